package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/access"
	"leapview/domain/serving"
)

func (p *program) keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make, list and revoke the keys that callers over HTTP show",
		Long: `Whoever calls the node over HTTP shows a key, in the header Authorization: Bearer KEY. As long as no key was ever made, callers on the
node's own machine need none, and the node listens on loopback only. These commands, like all others, reach the node through its socket
or its directory, and need no key.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.keyCreateCommand(), p.keyListCommand(), p.keyRevokeCommand())
	return cmd
}

func (p *program) keyCreateCommand() *cobra.Command {
	var asked keyRequestDoc
	cmd := &cobra.Command{
		Use:   "create --role viewer|analyst|operator",
		Short: "Make a key and print it, this once",
		Long: `Makes a key and prints it on standard output. The node keeps only its digest: a key that is lost is revoked, and another one made.

A viewer calls endpoints and reads status. An analyst also sees the rows that failed a check, and why a refresh failed. An operator
also refreshes and, without --workspace, manages keys.`,
		Example: `  leapview key create --role viewer --workspace flights --label dashboards --expires 90d
  leapview key create --role operator > operator.key`,
		Args: arguments(),
		RunE: p.run(func(ctx context.Context, _ []string) error { return p.keyCreate(ctx, asked) }),
	}
	cmd.Flags().StringVar(&asked.Role, "role", "", "`role` of who holds the key: viewer, analyst or operator")
	cmd.Flags().StringVar(&asked.Workspace, "workspace", "", "the only `workspace` that the key is for; all of them by default")
	cmd.Flags().StringVar(&asked.Label, "label", "", "`text` that says what the key is for")
	cmd.Flags().StringVar(&asked.Expires, "expires", "", "`time` that the key lives, such as 90d or 12h; it does not expire by default")
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) keyListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys, never their text",
		Args:  arguments(),
		RunE:  p.run(func(ctx context.Context, _ []string) error { return p.keyList(ctx) }),
	}
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) keyRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Refuse a key from now on",
		Example: `  leapview key revoke k3v9x2mq`,
		Args:    arguments("the ID of a key"),
		RunE: p.run(func(ctx context.Context, args []string) error {
			id, err := access.ParseKeyID(args[0])
			if err != nil {
				return err
			}
			return p.keyRevoke(ctx, id)
		}),
	}
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) keyCreate(ctx context.Context, asked keyRequestDoc) error {
	spec, err := asked.spec()
	if err != nil {
		return err
	}
	var made createdKeyDoc
	c, running, err := p.node(ctx)
	switch {
	case err != nil:
		return err
	case running:
		defer c.close()
		body, err := json.Marshal(asked)
		if err != nil {
			return err
		}
		if err := c.ask(ctx, http.MethodPost, "/v1/keys", map[string]string{"Content-Type": "application/json"}, body, &made); err != nil {
			return err
		}
	default:
		err = p.host.Open(ctx, p.options, p.stderr, func(ctx context.Context, n Node) error {
			key, secret, err := n.Keyring.Create(ctx, access.Local.Caller(""), spec)
			made = createdKeyDoc{secret.Reveal(), keyOf(app.KeyUse{Key: key})}
			return err
		})
		if err != nil {
			return err
		}
	}
	if p.json {
		return p.printJSON(made)
	}
	if err := p.print("%s\n", made.Key); err != nil {
		return err
	}
	p.hint("key %s, %s: keep it now, it is not shown again", made.ID, made.rights())
	return nil
}

func (p *program) keyList(ctx context.Context) error {
	all := keysDoc{Keys: []keyDoc{}}
	err := p.answered(ctx, inquiry{method: http.MethodGet, path: "/v1/keys"}, &all, func(_ context.Context, n Node) error {
		for _, k := range n.Keyring.List() {
			all.Keys = append(all.Keys, keyOf(k))
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(all)
	case len(all.Keys) == 0:
		p.hint("there are no keys: callers on this machine need none")
		return nil
	}
	rows := make([][]string, len(all.Keys))
	for i, k := range all.Keys {
		workspace, ends := "all", moment(k.ExpiresAt)
		if k.Workspace != nil {
			workspace = string(*k.Workspace)
		}
		if k.RevokedAt != nil {
			ends = "revoked " + moment(k.RevokedAt)
		}
		rows[i] = []string{string(k.ID), string(k.Role), workspace, printable(k.Label), moment(&k.CreatedAt), ends, moment(k.UsedAt)}
	}
	return writeTable(p.stdout, []string{"ID", "ROLE", "WORKSPACE", "LABEL", "CREATED", "ENDS", "USED"}, make([]bool, 7), rows)
}

func (p *program) keyRevoke(ctx context.Context, id access.KeyID) error {
	var revoked keyDoc
	err := p.answered(ctx, inquiry{method: http.MethodDelete, path: "/v1/keys/" + string(id)}, &revoked, func(ctx context.Context, n Node) error {
		key, err := n.Keyring.Revoke(ctx, access.Local.Caller(""), id)
		revoked = keyOf(key)
		return err
	})
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(revoked)
	}
	return p.print("revoked key %s, %s\n", revoked.ID, revoked.rights())
}

// spec is what the document asks for.
func (d keyRequestDoc) spec() (s access.Spec, err error) {
	s.Label = d.Label
	if s.Grant.Role, err = access.ParseRole(d.Role); err != nil {
		return s, err
	}
	if d.Workspace != "" {
		if s.Grant.Workspace, err = serving.ParseWorkspace(d.Workspace); err != nil {
			return s, err
		}
	}
	s.Lifetime, err = access.ParseLifetime(d.Expires)
	return s, err
}

// rights says what a key is good for.
func (d keyDoc) rights() string {
	s := string(d.Role) + " of all workspaces"
	if d.Workspace != nil {
		s = string(d.Role) + " of workspace " + string(*d.Workspace)
	}
	if d.Label != "" {
		s += ", " + printable(d.Label)
	}
	return s
}

// moment is a time as a table shows it.
func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

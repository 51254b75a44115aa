package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// maxDocument is the longest document that a command takes into memory. What the node bounds further stays far below it.
const maxDocument = 256 << 20

// client asks a node over HTTP.
type client struct {
	base string
	http *http.Client
}

// node gives a client of the node that runs on the data directory; running is false when none does.
func (p *program) node(ctx context.Context) (c *client, running bool, err error) {
	conn, err := p.host.Dial(ctx, p.options.DataDir)
	if err != nil {
		if fail.CodeOf(err) == "node_not_running" {
			return nil, false, nil
		}
		return nil, false, err
	}
	if err := conn.Close(); err != nil {
		return nil, false, fail.New(fail.Unavailable, "socket", "the node's socket cannot be used").Because(err)
	}
	return newClient("http://leapview", func(ctx context.Context, _, _ string) (net.Conn, error) {
		return p.host.Dial(ctx, p.options.DataDir)
	}), true, nil
}

// inquiry is one question to the API.
type inquiry struct {
	method, path string
	header       map[string]string
	body         []byte
}

// answered asks the running node and decodes its answer into doc or, without one, opens the data directory and lets here make doc.
func (p *program) answered(ctx context.Context, q inquiry, doc any, here func(context.Context, Node) error) error {
	c, running, err := p.node(ctx)
	if err != nil {
		return err
	}
	if !running {
		return p.host.Open(ctx, p.options, p.stderr, here)
	}
	defer c.close()
	return c.ask(ctx, q.method, q.path, q.header, q.body, doc)
}

func newClient(base string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *client {
	return &client{base, &http.Client{
		Transport: &http.Transport{DialContext: dial},
		// The API sends nobody elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// request asks, and turns a refusal into the error that the node met. The caller closes the body.
func (c *client) request(ctx context.Context, method, path string, header map[string]string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, broken(ctx, err)
	}
	if res.StatusCode < 400 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	var doc problemDoc
	if err := decode(ctx, res.Body, &doc); err != nil {
		return nil, err
	}
	return nil, doc.err()
}

// ask asks and decodes the answer into doc.
func (c *client) ask(ctx context.Context, method, path string, header map[string]string, body []byte, doc any) error {
	res, err := c.request(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return decode(ctx, res.Body, doc)
}

func decode(ctx context.Context, body io.Reader, doc any) error {
	b, err := io.ReadAll(io.LimitReader(body, maxDocument+1))
	if err != nil {
		return broken(ctx, err)
	}
	if len(b) > maxDocument {
		return fail.New(fail.Limit, "answer_too_large", "the answer is longer than %d bytes, more than can be shown", maxDocument).
			WithFix("print it as it is, with --json")
	}
	if err := json.Unmarshal(b, doc); err != nil {
		return fail.New(fail.Internal, "strange_answer", "the node's answer is not what this version of leapview expects").
			WithFix("use the same version of leapview as the node").Because(err)
	}
	return nil
}

// broken classifies the end of a conversation.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fail.New(fail.Canceled, "canceled", "canceled").Because(err)
	}
	return fail.New(fail.Unavailable, "node_gone", "the node stopped answering").Because(err).WithFix("leapview serve starts one")
}

// err is the error that the document tells of.
func (d problemDoc) err() error {
	problems := make(project.Problems, len(d.Problems))
	for i, m := range d.Problems {
		problems[i] = project.Problem{At: project.Position{File: m.File, Line: m.Line, Column: m.Column}, Message: m.Message, Fix: m.Fix, Line: m.Text}
	}
	if len(problems) > 0 && d.Code == problems.FailCode() {
		return problems
	}
	// A node tells the causes of an error too, so its detail counts the problems already.
	e := fail.New(kindNamed(d.Kind), d.Code, "%s", strings.TrimSuffix(d.Detail, ": "+problems.FailSummary()))
	if d.Fix != "" {
		e = e.WithFix("%s", d.Fix)
	}
	switch {
	case len(problems) > 0:
		return e.Because(problems)
	case len(d.Errors) > 0:
		wrong := &project.CallError{}
		for _, x := range d.Errors {
			wrong.Add(project.CallProblem{Pointer: x.Pointer, Message: x.Detail, Allowed: x.Allowed})
		}
		return refusedCall{e, wrong}
	}
	return e
}

// refusedCall is a refusal that lists what is wrong with the call.
type refusedCall struct {
	refusal *fail.Error
	wrong   *project.CallError
}

func (r refusedCall) Error() string { return r.refusal.Error() }

// FailSummary is the node's own: it has counted what is listed.
func (r refusedCall) FailSummary() string { return r.refusal.Message }

// Unwrap gives the refusal, then what is wrong.
func (r refusedCall) Unwrap() []error { return []error{r.refusal, r.wrong} }

func kindNamed(name string) fail.Kind {
	for _, k := range fail.Kinds() {
		if k.String() == name {
			return k
		}
	}
	return fail.Internal
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"leapview/adapters/fs"
)

// TestSameDocuments proves that --json prints the same documents whether a running node or the command itself made them: the HTTP and the
// command-line rooms each have their own Go types for them, because neither may import the other.
func TestSameDocuments(t *testing.T) {
	printed := func(s shop, args ...string) string {
		t.Helper()
		r := run(t, s.args(append(args, "--json")...)...)
		text := r.out
		if text == "" {
			// Log lines come before the error.
			lines := strings.Split(strings.TrimSpace(r.errOut), "\n")
			text = lines[len(lines)-1]
		}
		return fmt.Sprintf("exit %d, %s", r.code, shape(parsed(t, text)))
	}
	alone, served := newShop(t), newShop(t)
	n := serve(t, served.data)
	same := func(args ...string) {
		t.Helper()
		if with, without := printed(served, args...), printed(alone, args...); with != without {
			t.Errorf("%q from a node\n%s\nwithout one\n%s", args, with, without)
		}
	}
	// Both deploy the same files; where the sources are is not compared.
	same("deploy", served.dir)
	same("refresh", "shop")
	same("status")
	same("status", "shop")
	same("status", "none")
	// Nothing that the node sends to its own user is left out, and what is only read is the same to the last byte without it.
	with := ok(t, served.args("status", "--json")...).out
	if sent := overSocket(t, served, "/v1/workspaces"); !reflect.DeepEqual(parsed(t, with), parsed(t, sent)) {
		t.Errorf("the node sent\n%s\nand the command printed\n%s", sent, with)
	}
	refreshed := parsed(t, ok(t, served.args("refresh", "shop", "--json")...).out).(map[string]any)
	sent := parsed(t, overSocket(t, served, fmt.Sprintf("/v1/workspaces/shop/runs/%s", refreshed["id"]))).(map[string]any)
	delete(sent, "steps")
	if !reflect.DeepEqual(refreshed, sent) {
		t.Errorf("the node sent\n%v\nand the command printed\n%v", sent, refreshed)
	}
	with = ok(t, served.args("status", "--json")...).out
	n.stop(t)
	if without := ok(t, served.args("status", "--json")...).out; with != without {
		t.Errorf("from a node\n%s\nwithout one\n%s", with, without)
	}
	n = serve(t, served.data)
	same("refresh", "shop", "--no-wait")
	n.stop(t)
}

// overSocket gets a document as the node's own user does.
func overSocket(t *testing.T, s shop, path string) string {
	t.Helper()
	layout, err := fs.At(s.data)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return fs.Dial(ctx, layout)
	}}}
	resp, err := client.Get("http://leapview" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", path, resp.Status, err, text)
	}
	return string(text)
}

func parsed(t *testing.T, text string) (doc any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return doc
}

// shape is a document with the kinds of its values in their place.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var fields []string
		for name, value := range v {
			fields = append(fields, name+" "+shape(value))
		}
		slices.Sort(fields)
		return "{" + strings.Join(fields, ", ") + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[" + shape(v[0]) + " …]"
	case nil:
		return "null"
	case string:
		if v == "" {
			return "nothing"
		}
	}
	return fmt.Sprintf("%T", v)
}

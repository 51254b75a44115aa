package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// readBody reads the whole body of a request, at most limit bytes of it. tooLarge is the refusal of a longer one.
func readBody(c echo.Context, limit int64, tooLarge error) ([]byte, error) {
	req := c.Request()
	if req.ContentLength > limit {
		return nil, tooLarge
	}
	b, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, req.Body, limit))
	if err != nil {
		var long *http.MaxBytesError
		if errors.As(err, &long) {
			return nil, tooLarge
		}
		return nil, fail.New(fail.Invalid, "body_incomplete", "the request's body did not arrive whole within %s", bodyTime).Because(err)
	}
	// The request has arrived; its deadline must not end the work that follows.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Time{})
	return b, nil
}

// readObject reads a body that is one JSON object, or empty, which is the empty object. field reads the value of each of its keys.
func readObject(c echo.Context, limit int64, field func(d *json.Decoder, key string) error) error {
	b, err := readBody(c, limit, fail.New(fail.Limit, "body_too_large", "the request's body is longer than %d bytes (limit body_bytes = %d)", limit, limit).
		WithFix("send less, or let the node be started with a higher --body-bytes"))
	if err != nil || len(b) == 0 {
		return err
	}
	if t, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType)); err != nil || t != "application/json" {
		return fail.New(fail.Invalid, "not_json", "the request's body is not declared as JSON").WithFix("send the header Content-Type: application/json")
	}
	if !utf8.Valid(b) {
		return badJSON("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := walkObject(d, "the body", func(key string) error { return field(d, key) }); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badJSON("something follows the object")
	}
	return nil
}

// walkObject reads one object, and refuses a key that it holds twice. what names the object for people.
func walkObject(d *json.Decoder, what string, field func(key string) error) error {
	if err := expect(d, what, '{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := token(d)
		if err != nil {
			return err
		}
		// Within an object, the decoder gives keys as strings or an error.
		key, _ := t.(string)
		if seen[key] {
			return badJSON("%s has the key %q twice", what, key)
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	_, err := token(d)
	return err
}

// walkList reads one list.
func walkList(d *json.Decoder, what string, item func() error) error {
	if err := expect(d, what, '[', "a list"); err != nil {
		return err
	}
	for d.More() {
		if err := item(); err != nil {
			return err
		}
	}
	_, err := token(d)
	return err
}

// callKeys are the keys of an endpoint call.
var callKeys = []string{"params", "order_by", "columns", "limit"}

// readCall reads the value of one of the callKeys.
func readCall(d *json.Decoder, key string, call *project.Call) (err error) {
	switch key {
	case "params":
		call.Params = map[string]project.Given{}
		return walkObject(d, `"params"`, func(name string) error {
			given, ok, err := readGiven(d)
			if ok {
				call.Params[name] = given
			}
			return err
		})
	case "order_by":
		call.OrderBy, _, err = readGiven(d)
	case "columns":
		call.Columns, _, err = readGiven(d)
	case "limit":
		call.Limit, _, err = readGiven(d)
	}
	return err
}

// readGiven reads a value or a list of values into texts. null is the same as no value; ok is then false. Whether the value is one that
// its reader can use is judged with all the others of its call.
func readGiven(d *json.Decoder) (given project.Given, ok bool, err error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return given, false, broken(d, err)
	}
	switch raw[0] {
	case 'n':
		return given, false, nil
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return given, false, broken(d, err)
		}
		given.List = true
		for _, x := range items {
			given.Items = append(given.Items, item(x))
		}
	default:
		given.Items = []project.Item{item(raw)}
	}
	return given, true, nil
}

// item is the text of a JSON value that stands for one.
func item(raw json.RawMessage) project.Item {
	switch raw[0] {
	case '"':
		var s string
		// The decoder has read the string before.
		_ = json.Unmarshal(raw, &s)
		return project.Item{Text: s}
	case '{':
		return project.Item{Instead: "an object"}
	case '[':
		return project.Item{Instead: "a list"}
	case 'n':
		return project.Item{Instead: "null"}
	}
	return project.Item{Text: string(raw)}
}

func readString(d *json.Decoder, what string) (string, error) {
	t, err := token(d)
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", badJSON("%s must be a string", what)
	}
	return s, nil
}

func expect(d *json.Decoder, what string, open json.Delim, name string) error {
	t, err := token(d)
	if err != nil {
		return err
	}
	if t != open {
		return badJSON("%s must be %s", what, name)
	}
	return nil
}

func token(d *json.Decoder) (json.Token, error) {
	t, err := d.Token()
	if err != nil {
		return nil, broken(d, err)
	}
	return t, nil
}

// broken is the refusal of text that the decoder cannot read.
func broken(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return badJSON("byte %d: %s", d.InputOffset(), err)
}

func badJSON(format string, args ...any) *fail.Error {
	return fail.New(fail.Invalid, "bad_json", "the request's body is refused: "+format, args...)
}

// unknownKey refuses a key that an object cannot have.
func unknownKey(what, key string, known ...string) error {
	return badJSON("%s has the unknown key %q", what, key).WithFix("%s", project.Suggest(key, known))
}

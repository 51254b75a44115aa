package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
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

// readParams reads an object of parameter values into texts. null is the same as no value.
func readParams(d *json.Decoder) (map[string]string, error) {
	params := map[string]string{}
	err := walkObject(d, `"params"`, func(key string) error {
		t, err := token(d)
		if err != nil {
			return err
		}
		switch v := t.(type) {
		case nil:
		case string:
			params[key] = v
		case json.Number:
			params[key] = v.String()
		case bool:
			params[key] = strconv.FormatBool(v)
		default:
			return badJSON("parameter %q must be a string, a number, true, false or null", key)
		}
		return nil
	})
	return params, err
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
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, badJSON("byte %d: %s", d.InputOffset(), err)
	}
	return t, nil
}

func badJSON(format string, args ...any) *fail.Error {
	return fail.New(fail.Invalid, "bad_json", "the request's body is refused: "+format, args...)
}

// unknownKey refuses a key that an object cannot have.
func unknownKey(what, key string, known ...string) error {
	return badJSON("%s has the unknown key %q", what, key).WithFix("%s", project.Suggest(key, known))
}

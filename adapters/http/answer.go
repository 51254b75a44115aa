package http

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// originDoc says what a request was answered from.
type originDoc struct {
	Workspace  serving.Workspace        `json:"workspace"`
	Lineage    string                   `json:"lineage"`
	Generation serving.GenerationNumber `json:"generation"`
	Snapshot   serving.Snapshot         `json:"snapshot"`
	Release    project.Digest           `json:"release"`
	BuiltAt    time.Time                `json:"built_at"`
}

// resultDoc says how complete an answer is.
type resultDoc struct {
	Rows      int  `json:"rows"`
	Truncated bool `json:"truncated"`
	// TruncationReason is null when nothing was left out.
	TruncationReason *string  `json:"truncation_reason"`
	Warnings         []string `json:"warnings"`
}

// answerMeta is the meta of a single answer.
type answerMeta struct {
	originDoc
	resultDoc
}

func originOf(a app.Asked) originDoc {
	return originDoc{a.Workspace, a.Lineage, a.Pointer.Generation, a.Pointer.Snapshot, a.Pointer.Release, a.Pointer.BuiltAt.UTC()}
}

func resultOf(a serving.Answer) resultDoc {
	d := resultDoc{Rows: a.Count, Truncated: a.Truncated, Warnings: a.Warnings}
	if a.Truncated {
		d.TruncationReason = &a.TruncationReason
	}
	if d.Warnings == nil {
		d.Warnings = []string{}
	}
	return d
}

// setOrigin repeats in headers what a request was answered from.
func setOrigin(c echo.Context, a app.Asked) {
	h := c.Response().Header()
	h.Set("LeapView-Workspace", string(a.Workspace))
	h.Set("LeapView-Lineage", a.Lineage)
	h.Set("LeapView-Generation", strconv.FormatInt(int64(a.Pointer.Generation), 10))
	h.Set("LeapView-Snapshot", strconv.FormatInt(int64(a.Pointer.Snapshot), 10))
	h.Set("LeapView-Release", string(a.Pointer.Release))
}

// envelope collects the parts of a document around rows that are encoded already and may be large.
type envelope struct {
	parts [][]byte
	err   error
}

func (e *envelope) text(s string) { e.parts = append(e.parts, []byte(s)) }

func (e *envelope) value(v any) {
	b, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("encode answer: %w", err)
	}
	e.parts = append(e.parts, b)
}

// table adds the columns and rows of an answer.
func (e *envelope) table(a serving.Answer) {
	columns := a.Columns
	if columns == nil {
		columns = []serving.Column{}
	}
	e.text(`"columns":`)
	e.value(columns)
	e.text(`,"rows":`)
	e.parts = append(e.parts, a.Rows)
	e.text(`,"meta":`)
}

// sendAnswer writes the answer of a single call.
func sendAnswer(c echo.Context, asked app.Asked) error {
	a := asked.Answers[0]
	var e envelope
	e.text("{")
	e.table(a)
	e.value(answerMeta{originOf(asked), resultOf(a)})
	e.text("}\n")
	return e.send(c, asked)
}

// sendBundle writes the answers of a query bundle.
func sendBundle(c echo.Context, asked app.Asked, calls []app.Call) error {
	var e envelope
	e.text(`{"meta":`)
	e.value(originOf(asked))
	e.text(`,"results":[`)
	for i, a := range asked.Answers {
		if i > 0 {
			e.text(",")
		}
		e.text(`{"name":`)
		e.value(calls[i].Name)
		e.text(`,"endpoint":`)
		e.value(calls[i].Endpoint)
		e.text(",")
		e.table(a)
		e.value(resultOf(a))
		e.text("}")
	}
	e.text("]}\n")
	return e.send(c, asked)
}

func (e *envelope) send(c echo.Context, asked app.Asked) error {
	if e.err != nil {
		return e.err
	}
	setOrigin(c, asked)
	return send(c, http.StatusOK, echo.MIMEApplicationJSON, e.parts...)
}

// sendJSON writes a small document.
func sendJSON(c echo.Context, status int, contentType string, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return send(c, status, contentType, append(b, '\n'))
}

// send is the one way out. The parts are written one after another as they are.
func send(c echo.Context, status int, contentType string, parts ...[]byte) error {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, contentType)
	h.Set(echo.HeaderContentLength, strconv.Itoa(length))
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(writeTime))
	c.Response().WriteHeader(status)
	for _, p := range parts {
		if _, err := c.Response().Write(p); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
	return nil
}

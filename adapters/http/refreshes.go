package http

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// maxIdempotencyKey is the longest idempotency key.
const maxIdempotencyKey = 255

// runDoc is a run. Times and results that there are not yet are null.
type runDoc struct {
	ID          refresh.RunID             `json:"id"`
	Workspace   serving.Workspace         `json:"workspace"`
	Status      refresh.Status            `json:"status"`
	Attempts    int                       `json:"attempts"`
	Deployment  *int64                    `json:"deployment"`
	RequestedAt time.Time                 `json:"requested_at"`
	RequestedBy string                    `json:"requested_by"`
	StartedAt   *time.Time                `json:"started_at"`
	EndedAt     *time.Time                `json:"ended_at"`
	Generation  *serving.GenerationNumber `json:"generation"`
	Snapshot    *serving.Snapshot         `json:"snapshot"`
	Failure     *refresh.Failure          `json:"failure"`
}

// runStepsDoc is a run with what its checks found, and what the node remembers of its progress.
type runStepsDoc struct {
	runDoc
	Checks []checkDoc `json:"checks"`
	Steps  []stepDoc  `json:"steps"`
}

// checkDoc is what one check found. Sample holds a few of the failures, null when there are none to show.
type checkDoc struct {
	Model    string            `json:"model"`
	Kind     project.CheckKind `json:"kind"`
	Check    string            `json:"check"`
	Name     string            `json:"name,omitempty"`
	File     string            `json:"file"`
	Line     int               `json:"line"`
	Severity project.Severity  `json:"severity"`
	Outcome  string            `json:"outcome"`
	Failures int64             `json:"failures"`
	Judged   int64             `json:"judged"`
	Detail   string            `json:"detail"`
	Sample   json.RawMessage   `json:"sample"`
}

func checkDocs(results []refresh.CheckResult) []checkDoc {
	docs := make([]checkDoc, len(results))
	for i, r := range results {
		docs[i] = checkDoc{r.Model, r.Kind(), r.Check, r.Name, r.At.File, r.At.Line, r.Severity, r.Outcome(), r.Failures, r.Judged, r.Detail, nil}
		if r.Sample != "" {
			docs[i].Sample = json.RawMessage(r.Sample)
		}
	}
	return docs
}

type stepDoc struct {
	At      time.Time  `json:"at"`
	Phase   plan.Phase `json:"phase"`
	Subject string     `json:"subject,omitempty"`
	Done    bool       `json:"done"`
	// Rows is null when the step makes none, or has not ended.
	Rows *int64 `json:"rows"`
	// Action is what is done to the table that is built (rebuild, append, upsert, replace_partitions), and Reason says why.
	Action plan.Action `json:"action,omitempty"`
	Reason string      `json:"reason,omitempty"`
	// Warning is what to look at although the step ended well.
	Warning string `json:"warning,omitempty"`
}

// requestRefresh is POST /v1/workspaces/{workspace}/refreshes. The run is worked on after the answer.
func (r *routes) requestRefresh(c echo.Context) error {
	w := workspaceOf(c)
	key, err := idempotencyKey(c.Request().Header)
	if err != nil {
		return err
	}
	if err := readObject(c, r.maxBody, func(_ *json.Decoder, key string) error { return unknownKey("the body", key) }); err != nil {
		return err
	}
	run, err := r.refresher.Request(c.Request().Context(), w, key, callerOf(c))
	if err != nil {
		return err
	}
	r.worker.Wake()
	c.Response().Header().Set(echo.HeaderLocation, fmt.Sprintf("/v1/workspaces/%s/runs/%s", w, run.ID))
	return sendJSON(c, http.StatusAccepted, echo.MIMEApplicationJSON, r.runDoc(run))
}

// run is GET /v1/workspaces/{workspace}/runs/{run}.
func (r *routes) run(c echo.Context) error {
	w := workspaceOf(c)
	run, err := r.refresher.Run(c.Request().Context(), w, refresh.RunID(c.Param("run")))
	if err != nil {
		return err
	}
	checks, err := r.refresher.Checks(c.Request().Context(), run.ID)
	if err != nil {
		return err
	}
	// The steps are taken after the run: one that has ended then lacks no step that was made before its end.
	doc := runStepsDoc{r.runDoc(run), checkDocs(checks), stepDocs(r.worker.Steps(run.ID))}
	r.shade(c, &doc)
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, doc)
}

// shade takes out of a run's document what its caller may not read.
func (r *routes) shade(c echo.Context, doc *runStepsDoc) {
	if access.Allowed(askedOf(c).principal, access.ReadRows, workspaceOf(c)) != nil {
		doc.hideRows()
	}
}

// hideRows takes out what quotes rows or headers: they are of the sources, or of a snapshot that may never be activated.
func (d *runStepsDoc) hideRows() {
	for i := range d.Checks {
		d.Checks[i].Sample = nil
	}
	for i := range d.Steps {
		d.Steps[i].Warning, d.Steps[i].Reason = "", ""
	}
	if d.Failure != nil {
		d.Failure.Message = "the refresh failed; a key with the role analyst is told why"
	}
}

// defaultRuns is how many runs are listed unless the query says otherwise.
const defaultRuns = 20

// listRuns is GET /v1/workspaces/{workspace}/runs?limit=N: the newest runs, the newest first.
func (r *routes) listRuns(c echo.Context) error {
	query, err := queryParams(c.Request().URL)
	if err != nil {
		return err
	}
	limit := defaultRuns
	for name, text := range query {
		n, err := strconv.Atoi(text)
		if name != "limit" || err != nil {
			return fail.New(fail.Invalid, "bad_limit", "the list of runs has no query parameter %s=%q", name, text).WithFix("limit=N is the only one, a number from 1 to %d", app.MostRuns)
		}
		limit = n
	}
	runs, err := r.status.Runs(c.Request().Context(), workspaceOf(c), limit)
	if err != nil {
		return err
	}
	docs := make([]runDoc, len(runs))
	for i, run := range runs {
		doc := runStepsDoc{runDoc: r.runDoc(run)}
		r.shade(c, &doc)
		docs[i] = doc.runDoc
	}
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, map[string]any{"runs": docs})
}

// idempotencyKey is the request's key, or "" when it has none.
func idempotencyKey(h http.Header) (string, error) {
	keys := h.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	bad := len(keys) > 1 || keys[0] == "" || len(keys[0]) > maxIdempotencyKey
	for _, b := range []byte(keys[0]) {
		bad = bad || b < ' ' || b > '~'
	}
	if bad {
		return "", fail.New(fail.Invalid, "bad_idempotency_key", "the Idempotency-Key is not one text of 1 to %d printable ASCII characters", maxIdempotencyKey)
	}
	return keys[0], nil
}

func (r *routes) runDoc(run refresh.Run) runDoc {
	d := runDoc{ID: run.ID, Workspace: run.Workspace, Status: run.Status, Attempts: run.Attempts, RequestedAt: run.RequestedAt.UTC(),
		RequestedBy: run.RequestedBy, Deployment: unlessZero(run.Deployment), Generation: unlessZero(run.Generation),
		Snapshot: unlessZero(run.Snapshot), StartedAt: unlessZero(run.StartedAt.UTC()), EndedAt: unlessZero(run.EndedAt.UTC()),
		Failure: unlessZero(run.Failure)}
	// What is invalid is told with its place in the project's own files; other failures may name the node's folders.
	if d.Failure != nil && d.Failure.Kind != fail.Invalid.String() && !r.local {
		d.Failure.Message = "the refresh failed on the node; look for the run's id in its log, or ask leapview status beside it"
	}
	return d
}

func stepDocs(steps []app.Step) []stepDoc {
	docs := make([]stepDoc, len(steps))
	for i, s := range steps {
		docs[i] = stepDoc{At: s.At.UTC(), Phase: s.Phase, Subject: s.Subject, Done: s.Done, Action: s.Action, Reason: s.Reason, Warning: s.Warning}
		if s.Done && s.Rows >= 0 {
			docs[i].Rows = &s.Rows
		}
	}
	return docs
}

// unlessZero is nil for a zero value, which stands for what there is not yet.
func unlessZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

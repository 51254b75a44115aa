package refresh

import (
	"encoding/json"
	"fmt"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// File is a data file of a candidate, as it was when the candidate was made durable.
type File struct {
	// Path is relative to the lake's data directory, slash-separated.
	Path   string
	Size   int64
	SHA256 project.Digest
}

// SourceFile is a source's file as an attempt read it.
type SourceFile struct {
	Source string
	// Name is relative to the source root, slash-separated.
	Name   string
	Size   int64
	SHA256 project.Digest
}

// CheckResult is what one check found in a candidate.
type CheckResult struct {
	Model string
	// Check is the rule as its author wrote it, and Name what its author calls it, or "".
	Check, Name string
	At          project.Position
	Severity    project.Severity
	OK          bool
	// Failures of Judged rows broke the rule; for rules about the whole table Failures is 0 or 1.
	Failures, Judged int64
	// Detail says what was observed, for example "3 of 120 rows have a NULL".
	Detail string
	// Sample is a few of the failures as JSON, {"columns": […], "rows": [[…]]}, or "" when there is none. It may lack some of the rows'
	// columns, which "more_columns" counts. Where the engine could not judge the rows, it is what the engine says, in a column "error".
	Sample string
}

// Kind is the kind of the check.
func (r CheckResult) Kind() project.CheckKind {
	kind, _, _ := strings.Cut(r.Check, "(")
	return project.CheckKind(kind)
}

// first is the first of the sampled failures on one line, cut, or "".
func (r CheckResult) first() string {
	var sample struct {
		Columns []string
		Rows    [][]json.RawMessage
	}
	if json.Unmarshal([]byte(r.Sample), &sample) != nil || len(sample.Rows) == 0 {
		return ""
	}
	var cells []string
	for i, value := range sample.Rows[0][:min(len(sample.Rows[0]), len(sample.Columns))] {
		cells = append(cells, sample.Columns[i]+"="+string(value))
	}
	line := strings.Join(cells, " ")
	if len(line) > maxFirstBytes {
		line = strings.ToValidUTF8(line[:maxFirstBytes], "") + "…"
	}
	return line
}

// The bounds of what a run keeps and says of its checks.
const (
	// maxSampleBytes is how much of all samples together is kept.
	maxSampleBytes = 512 << 10
	// maxFirstBytes is how long a failure's first row is in the message, and maxNamed how many failed checks the message names.
	maxFirstBytes = 200
	maxNamed      = 50
)

// Bounded is the results without the samples that a run does not keep: those behind the first ones that fill the bound.
func Bounded(results []CheckResult) []CheckResult {
	out := append([]CheckResult(nil), results...)
	kept := 0
	for i := range out {
		if kept += len(out[i].Sample); kept > maxSampleBytes {
			kept -= len(out[i].Sample)
			out[i].Sample = ""
		}
	}
	return out
}

// Outcome is passed, warned or failed.
func (r CheckResult) Outcome() string {
	switch {
	case r.OK:
		return "passed"
	case r.Severity == project.SeverityWarn:
		return "warned"
	}
	return "failed"
}

// Candidate is an attempt that was not activated: exactly one of Begun, Committed, Durable, Validated and Orphan.
type Candidate interface {
	// Mark identifies the attempt.
	Mark() Mark
	// Stage is the stored name of the candidate's state.
	Stage() Stage
	// abandoned is what becomes of the candidate when it is given up.
	abandoned(reason string) Orphan
}

// Stage is the stored name of a candidate's state. StageActivated is what a candidate's row says once it has become the active
// snapshot; it is a candidate no more and has no type here.
type Stage string

// The stages, in order.
const (
	StageBegun     Stage = "begun"
	StageCommitted Stage = "committed"
	StageDurable   Stage = "durable"
	StageValidated Stage = "validated"
	StageActivated Stage = "activated"
	StageOrphan    Stage = "orphan"
)

type attempt struct{ mark Mark }

func (a attempt) Mark() Mark { return a.mark }

// Begun has a fence and nothing in the lake that anybody has seen. It may have a commit there: only its mark can tell.
type Begun struct{ attempt }

// Committed has a snapshot, proved by its mark. Its files may still be lost by a power cut.
type Committed struct {
	attempt
	snapshot serving.Snapshot
}

// Durable has all of its data files on disk, with their sizes and digests known.
type Durable struct {
	Committed
	files []File
}

// Validated has passed every check, at its own snapshot.
type Validated struct {
	Durable
	checks []CheckResult
}

// Orphan was given up. Its snapshot, when it has one, is never served.
type Orphan struct {
	attempt
	snapshot serving.Snapshot
	reason   string
}

// Stage is StageBegun.
func (Begun) Stage() Stage { return StageBegun }

// Stage is StageCommitted.
func (Committed) Stage() Stage { return StageCommitted }

// Stage is StageDurable.
func (Durable) Stage() Stage { return StageDurable }

// Stage is StageValidated.
func (Validated) Stage() Stage { return StageValidated }

// Stage is StageOrphan.
func (Orphan) Stage() Stage { return StageOrphan }

// Snapshot is the candidate's snapshot.
func (c Committed) Snapshot() serving.Snapshot { return c.snapshot }

// Files are every data file that the candidate's tables need.
func (d Durable) Files() []File { return d.files }

// Checks are the results that validated the candidate.
func (v Validated) Checks() []CheckResult { return v.checks }

// Snapshot is the orphan's snapshot, or 0 when it never committed.
func (o Orphan) Snapshot() serving.Snapshot { return o.snapshot }

// Reason says why the candidate was given up.
func (o Orphan) Reason() string { return o.reason }

// Proved turns a begun attempt into a committed candidate. read is the mark found in the catalog, at is the snapshot that
// carries it; anything but the attempt's very own mark is refused.
func (b Begun) Proved(read Mark, at serving.Snapshot) (Committed, error) {
	if read != b.mark {
		return Committed{}, fail.New(fail.Corrupt, "foreign_mark", "snapshot %d carries the mark of %s, not of %s", at, read, b.mark)
	}
	if at <= b.mark.Base || at <= 0 {
		return Committed{}, fail.New(fail.Corrupt, "snapshot_behind_base", "snapshot %d of %s is not newer than its base %d", at, b.mark, b.mark.Base)
	}
	return Committed{b.attempt, at}, nil
}

// Synced turns a committed candidate into a durable one. files are all that its tables need, each already on disk.
func (c Committed) Synced(files []File) (Durable, error) {
	for _, f := range files {
		if f.Path == "" || f.Size <= 0 || len(f.SHA256) != 64 {
			return Durable{}, fail.New(fail.Corrupt, "bad_file_record", "%s: data file %q has no size or digest", c.mark, f.Path)
		}
	}
	return Durable{c, append([]File(nil), files...)}, nil
}

// Judged turns a durable candidate into a validated one, or says which checks failed.
func (d Durable) Judged(results []CheckResult) (Validated, error) {
	var named project.Problems
	failed := 0
	for _, r := range results {
		if r.Outcome() != "failed" {
			continue
		}
		if failed++; failed > maxNamed {
			continue
		}
		p := project.Problem{At: r.At, Message: fmt.Sprintf("check %s of model %q failed: %s", r.Check, r.Model, r.Detail)}
		if first := r.first(); first != "" {
			p.Message += ", such as " + first
		}
		named = append(named, p)
	}
	if failed > maxNamed {
		named[maxNamed-1].Message += fmt.Sprintf("; and %d more checks failed", failed-maxNamed)
	}
	if failed > 0 {
		return Validated{}, fail.New(fail.Invalid, "checks_failed", "%d of %d checks failed; the active snapshot stays as it was", failed, len(results)).Because(named)
	}
	return Validated{d, append([]CheckResult(nil), results...)}, nil
}

// Abandon gives a candidate up. An orphan stays as it is.
func Abandon(c Candidate, reason string) Orphan { return c.abandoned(reason) }

func (b Begun) abandoned(reason string) Orphan { return Orphan{b.attempt, 0, reason} }

// Durable and Validated are given up like this too.
func (c Committed) abandoned(reason string) Orphan { return Orphan{c.attempt, c.snapshot, reason} }

func (o Orphan) abandoned(string) Orphan { return o }

// Row is a candidate as storage holds it; it exists only between storage and Load.
type Row struct {
	Stage    Stage
	Mark     Mark
	Snapshot serving.Snapshot
	Files    []File
	Checks   []CheckResult
	Reason   string
}

// Load is the one door back from storage. It refuses rows that no transition here could have left.
func Load(r Row) (Candidate, error) {
	if err := r.Mark.validate(); err != nil {
		return nil, err
	}
	bad := func(why string) error {
		return fail.New(fail.Corrupt, "impossible_candidate", "%s is stored as %q, which cannot be: %s", r.Mark, r.Stage, why)
	}
	if r.Reason != "" && r.Stage != StageOrphan {
		return nil, bad("only an orphan has a reason")
	}
	b := Begun{attempt{r.Mark}}
	if r.Stage == StageBegun {
		if r.Snapshot != 0 || len(r.Files) > 0 || len(r.Checks) > 0 {
			return nil, bad("an attempt that only began has no snapshot, files or checks")
		}
		return b, nil
	}
	if r.Stage == StageOrphan {
		if r.Reason == "" {
			return nil, bad("an orphan has a reason")
		}
		if r.Snapshot != 0 && r.Snapshot <= r.Mark.Base {
			return nil, bad("an orphan's snapshot is newer than its base")
		}
		return Orphan{b.attempt, r.Snapshot, r.Reason}, nil
	}
	c, err := b.Proved(r.Mark, r.Snapshot)
	if err != nil {
		return nil, bad(err.Error())
	}
	if r.Stage == StageCommitted {
		if len(r.Files) > 0 || len(r.Checks) > 0 {
			return nil, bad("files and checks come later")
		}
		return c, nil
	}
	d, err := c.Synced(r.Files)
	if err != nil {
		return nil, bad(err.Error())
	}
	if r.Stage == StageDurable {
		if len(r.Checks) > 0 {
			return nil, bad("checks come later")
		}
		return d, nil
	}
	v, err := d.Judged(r.Checks)
	if err != nil {
		return nil, bad(err.Error())
	}
	if r.Stage == StageValidated {
		return v, nil
	}
	return nil, bad("no such state")
}

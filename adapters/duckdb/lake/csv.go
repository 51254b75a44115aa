package lake

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// maxUnpacked bounds what one gzipped file may unpack to, so that a small file cannot fill the disk.
const maxUnpacked = int64(64) << 30

// unpackers is how many files are unpacked at once.
const unpackers = 2

// openArtifact reads a staged file, unpacked. A gzip stream that is cut or damaged fails in the reader, by its own checksum.
func openArtifact(a ports.Artifact) (io.ReadCloser, error) {
	f, err := os.Open(a.Path)
	if err != nil {
		return nil, fail.New(fail.Internal, "staged_file_gone", "the staged copy of %s cannot be opened", a.Name).Because(err)
	}
	if !strings.HasSuffix(a.Name, ".gz") {
		return f, nil
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
	if err != nil {
		return nil, errors.Join(damaged(a, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

func damaged(a ports.Artifact, err error) error {
	return project.Problems{{At: project.Position{File: a.Name}, Message: fmt.Sprintf("the gzip file is damaged or cut short: %v", err), Fix: "deliver the file again"}}
}

// unpack writes gzipped files beside their staged copies, and gives the artifacts with the unpacked paths. The engine would take a
// gzip file that was cut short for one with fewer rows.
func unpack(ctx context.Context, artifacts []ports.Artifact) ([]ports.Artifact, error) {
	out := slices.Clone(artifacts)
	errs := make([]error, len(out))
	turn := make(chan struct{}, unpackers)
	var all sync.WaitGroup
	for i, a := range out {
		if !strings.HasSuffix(a.Name, ".gz") {
			continue
		}
		turn <- struct{}{}
		all.Add(1)
		go func() {
			defer func() { <-turn; all.Done() }()
			out[i].Path = a.Path + ".unpacked"
			errs[i] = unpackOne(ctx, a, out[i].Path)
		}()
	}
	all.Wait()
	return out, errors.Join(errs...)
}

func unpackOne(ctx context.Context, a ports.Artifact, to string) (err error) {
	in, err := openArtifact(a)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fail.New(fail.Internal, "cannot_unpack", "%s cannot be unpacked", a.Name).Because(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffer := make([]byte, 1<<18)
	for total := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return fail.New(fail.Canceled, "canceled", "unpacking %s was given up", a.Name).Because(err)
		}
		n, readErr := in.Read(buffer)
		if total += int64(n); total > maxUnpacked {
			return fail.New(fail.Limit, "unpacked_bytes", "%s unpacks to more than %d bytes (limit unpacked_bytes)", a.Name, maxUnpacked).WithFix("split the file")
		}
		if _, err := f.Write(buffer[:n]); err != nil {
			return fail.New(fail.Limit, "cannot_unpack", "%s cannot be unpacked", a.Name).Because(err).WithFix("free space on the disk that holds the data directory")
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return damaged(a, readErr)
		}
	}
}

// stageCSV reads every file by the columns that its own header names. What the engine stops at is explained by reading the file once
// more, since its own line numbers count records.
func (b *build) stageCSV(ctx context.Context, table string, source project.Source, artifacts []ports.Artifact) error {
	var problems project.Problems
	orders := make([][]string, len(artifacts))
	for i, a := range artifacts {
		header, found, err := readHeader(a, source)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
		orders[i] = header
	}
	if len(problems) > 0 {
		return first(problems)
	}
	plain, err := unpack(ctx, artifacts)
	if err != nil {
		return err
	}
	defer func() {
		for i, a := range plain {
			if a.Path != artifacts[i].Path {
				// What stays is removed with the run's staging folder.
				_ = remove(a.Path)
			}
		}
	}()
	// Files with the same header are read together, so that the engine reads them side by side.
	for i := 0; i < len(plain); {
		j := i + 1
		for j < len(plain) && slices.Equal(orders[i], orders[j]) {
			j++
		}
		if err := b.insertCSV(ctx, table, source, orders[i], plain[i:j]); err != nil {
			if !stopped(err) {
				return err
			}
			return explainCSV(err, source, orders[i], artifacts[i:j])
		}
		i = j
	}
	return nil
}

func (b *build) insertCSV(ctx context.Context, table string, source project.Source, header []string, files []ports.Artifact) error {
	place := map[string]string{}
	columns := make([]string, len(header))
	for i, name := range header {
		place[name] = fmt.Sprintf("c%d", i)
		columns[i] = fmt.Sprintf("'c%d': 'VARCHAR'", i)
	}
	values := join(source.Columns, ", ", func(c project.Column) string { return typed(place[c.Name], c.Type) })
	paths := join(files, ", ", func(a ports.Artifact) string { return literal(a.Path) })
	nulls := join(append([]string{""}, source.NullTexts...), ", ", literal)
	return b.conn.Exec(ctx, "INSERT INTO "+quote(table)+" SELECT "+values+" FROM read_csv(["+paths+"], auto_detect = false, header = true, strict_mode = true, null_padding = false, compression = 'none', delim = "+
		literal(source.Delimiter)+", quote = '\"', escape = '\"', allow_quoted_nulls = false, nullstr = ["+nulls+"], columns = {"+strings.Join(columns, ", ")+"})")
}

// reader reads records as the engine does: quoted with ", the delimiter declared.
func reader(r io.Reader, source project.Source) *csv.Reader {
	c := csv.NewReader(skipBOM(r))
	c.Comma = rune(source.Delimiter[0])
	c.FieldsPerRecord = -1
	c.ReuseRecord = true
	return c
}

func skipBOM(r io.Reader) io.Reader {
	b := bufio.NewReaderSize(r, 1<<16)
	if head, err := b.Peek(3); err == nil && bytes.Equal(head, []byte{0xEF, 0xBB, 0xBF}) {
		_, _ = b.Discard(3)
	}
	return b
}

// readHeader gives the names in the file's first record, and what is wrong with them.
func readHeader(a ports.Artifact, source project.Source) ([]string, project.Problems, error) {
	f, err := openArtifact(a)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	at := project.Position{File: a.Name, Line: 1, Column: 1}
	record, err := reader(f, source).Read()
	if errors.Is(err, io.EOF) {
		return nil, project.Problems{{At: at, Message: "the file is empty: it has not even a header", Fix: "deliver the file again"}}, nil
	}
	if err != nil {
		return nil, project.Problems{{At: at, Message: fmt.Sprintf("the header cannot be read: %v", err), Fix: "deliver the file again, or correct the source's delimiter"}}, nil
	}
	header := slices.Clone(record)
	var problems project.Problems
	bad := func(fix, format string, args ...any) {
		problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	declared := make([]string, len(source.Columns))
	for i, c := range source.Columns {
		declared[i] = c.Name
	}
	for i, name := range header {
		switch {
		case slices.Contains(header[:i], name):
			bad("deliver the file with each column once", "the header names the column %q twice", name)
		case !slices.Contains(declared, name):
			fix := project.Suggest(name, declared)
			if fix == "" {
				fix = "declare it under columns, or deliver the file without it"
			}
			bad(fix, "the header has a column %q that source %q does not declare", name, source.Name)
		}
	}
	for _, name := range declared {
		if !slices.Contains(header, name) {
			bad("", "the header lacks the column %q that source %q declares", name, source.Name)
		}
	}
	return header, problems, nil
}

// explainCSV finds the records that the engine stopped at.
func explainCSV(stop error, source project.Source, header []string, artifacts []ports.Artifact) error {
	var problems project.Problems
	for _, a := range artifacts {
		f, err := openArtifact(a)
		if err != nil {
			return err
		}
		problems = append(problems, misfitsInCSV(f, source, header, a)...)
		if err := f.Close(); err != nil {
			return err
		}
		if len(problems) > mostProblems {
			break
		}
	}
	if len(problems) == 0 {
		return unreadable(stop, artifacts[0])
	}
	return first(problems)
}

func misfitsInCSV(f io.Reader, source project.Source, header []string, a ports.Artifact) project.Problems {
	var problems project.Problems
	types := map[string]project.Type{}
	for _, c := range source.Columns {
		types[c.Name] = c.Type
	}
	r := reader(f, source)
	_, _ = r.Read()
	for len(problems) <= mostProblems {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return problems
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			return append(problems, project.Problem{At: project.Position{File: a.Name, Line: bad.StartLine, Column: 1}, Message: fmt.Sprintf("the record is not well-formed CSV: %v", bad.Err)})
		}
		if err != nil {
			return append(problems, project.Problem{At: project.Position{File: a.Name}, Message: fmt.Sprintf("the file cannot be read: %v", err)})
		}
		line, _ := r.FieldPos(0)
		if len(record) != len(header) {
			problems = append(problems, project.Problem{At: project.Position{File: a.Name, Line: line, Column: 1}, Message: fmt.Sprintf("the record has %d fields, the header has %d", len(record), len(header))})
			continue
		}
		for i, text := range record {
			if text == "" || slices.Contains(source.NullTexts, text) {
				continue
			}
			if why := unfit(text, types[header[i]]); why != "" {
				line, column := r.FieldPos(i)
				problems = append(problems, project.Problem{At: project.Position{File: a.Name, Line: line, Column: column},
					Message: fmt.Sprintf("column %q is declared %s, but the value is %s: %s", header[i], types[header[i]], shown(text), why)})
			}
		}
	}
	return problems
}

// shown is a value for people, cut when it is long.
func shown(text string) string {
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

// unfit says why a text is no value of the type, by the rules that typed gives the engine; "" when it is one.
func unfit(text string, t project.Type) string {
	if !utf8.ValidString(text) {
		return "it is not valid UTF-8"
	}
	if strings.ContainsRune(text, 0) {
		return "it holds a NUL byte"
	}
	if f := form(t); f != "" && !regexp.MustCompile(`^(?:`+f+`)$`).MatchString(text) {
		return "it has another form"
	}
	switch t {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT":
		if _, err := strconv.ParseInt(text, 10, map[project.Type]int{"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}[t]); err != nil {
			return "it is out of range"
		}
	case "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT":
		if _, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, map[project.Type]int{"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64}[t]); err != nil {
			return "it is out of range"
		}
	case "DOUBLE", "FLOAT":
		if v, err := strconv.ParseFloat(text, map[project.Type]int{"FLOAT": 32, "DOUBLE": 64}[t]); err != nil && math.IsInf(v, 0) {
			return "it is out of range"
		}
	case "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		if _, err := time.Parse(time.DateOnly, text[:10]); err != nil {
			return "there is no such day"
		}
		if rest := text[10:]; len(rest) >= 6 && (rest[1:3] > "24" || rest[4:6] > "59") {
			return "there is no such time of day"
		}
	case "TIME":
		if text[0:2] > "24" || text[3:5] > "59" {
			return "there is no such time of day"
		}
	case "JSON":
		if !json.Valid([]byte(text)) {
			return "it is not JSON"
		}
	case "UUID":
		if !uuidForm.MatchString(text) {
			return "it has another form"
		}
	}
	var width, scale int
	if n, _ := fmt.Sscanf(string(t), "DECIMAL(%d,%d)", &width, &scale); n == 2 {
		whole, _, _ := strings.Cut(strings.TrimLeft(text, "+-"), ".")
		if len(strings.TrimLeft(whole, "0")) > width-scale {
			return "it is out of range"
		}
	}
	return ""
}

var uuidForm = regexp.MustCompile(`^(?i)\{?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\}?$`)

// misfitsInJSON reads an array of objects or one object after another, and says which of them do not fit.
func misfitsInJSON(f io.Reader, source project.Source, a ports.Artifact) project.Problems {
	lines := &lineCounter{r: skipBOM(f)}
	d := json.NewDecoder(lines)
	d.UseNumber()
	var problems project.Problems
	types := map[string]project.Type{}
	for _, c := range source.Columns {
		types[c.Name] = c.Type
	}
	at := func() project.Position {
		return project.Position{File: a.Name, Line: lines.at(d.InputOffset()), Column: 1}
	}
	if format, err := jsonFormat(a); err != nil {
		return nil
	} else if format == "array" {
		_, _ = d.Token()
	}
	for len(problems) <= mostProblems && d.More() {
		var raw json.RawMessage
		err := d.Decode(&raw)
		where := at()
		if err != nil {
			return append(problems, project.Problem{At: where, Message: fmt.Sprintf("the file is not well-formed JSON: %v", err)})
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil || object == nil {
			problems = append(problems, project.Problem{At: where, Message: "each record has to be an object"})
			continue
		}
		names := make([]string, 0, len(object))
		for name := range object {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			t, ok := types[name]
			if !ok {
				problems = append(problems, project.Problem{At: where, Message: fmt.Sprintf("the record has a key %q that source %q does not declare", name, source.Name)})
				continue
			}
			if why := unfitJSON(object[name], t); why != "" {
				problems = append(problems, project.Problem{At: where, Message: fmt.Sprintf("key %q is declared %s, but the value is %s: %s", name, t, shown(string(object[name])), why)})
			}
		}
	}
	return problems
}

func unfitJSON(raw json.RawMessage, t project.Type) string {
	if string(raw) == "null" || t == "JSON" {
		return ""
	}
	switch t {
	case "VARCHAR", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "UUID", "BLOB":
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return "it is no string"
		}
		return unfit(text, t)
	case "BOOLEAN":
		if s := string(raw); s != "true" && s != "false" {
			return "it is neither true nor false"
		}
		return ""
	}
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return "it is no number"
	}
	return unfit(string(raw), t)
}

// lineCounter remembers where lines end in what was read through it.
type lineCounter struct {
	r    io.Reader
	read int64
	ends []int64
}

func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// at is the line, counted from 1, that the byte before offset is on.
func (l *lineCounter) at(offset int64) int {
	i, _ := slices.BinarySearch(l.ends, offset-1)
	return i + 1
}

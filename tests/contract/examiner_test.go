package contract

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/adapters/duckdb/examine"
	"leapview/adapters/mem"
	"leapview/domain/draft"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// examinerUnderTest is an examiner, and how a file gets where it can be read.
type examinerUnderTest struct {
	ports.Examiner
	stage func(t *testing.T, name string, content []byte) ports.Artifact
}

func TestExaminerMem(t *testing.T) {
	examinerSuite(t, func(*testing.T) examinerUnderTest {
		contents := map[string][]byte{}
		return examinerUnderTest{mem.Examiner{Content: func(a ports.Artifact) ([]byte, error) { return contents[a.Path], nil }},
			func(_ *testing.T, name string, content []byte) ports.Artifact {
				contents[name] = content
				return ports.Artifact{Name: name, Path: name, Size: int64(len(content))}
			}}
	})
}

func TestExaminerDuckDB(t *testing.T) {
	open := func(t *testing.T) (examinerUnderTest, string) {
		e, o := enginetest.Open(t)
		return examinerUnderTest{examine.New(e), func(t *testing.T, name string, content []byte) ports.Artifact {
			path := filepath.Join(o.StagedDir, filepath.Base(name))
			mustLake(t, os.WriteFile(path, content, 0o600))
			return ports.Artifact{Name: name, Path: path, Size: int64(len(content))}
		}}, o.StagedDir
	}
	examinerSuite(t, func(t *testing.T) examinerUnderTest { x, _ := open(t); return x })
	t.Run("a Parquet file says its own types", func(t *testing.T) {
		e, o := enginetest.Open(t)
		x := examine.New(e)
		c := enginetest.Conn(t, e)
		path := filepath.Join(o.StagedDir, "it's.parquet")
		mustLake(t, c.Exec(t.Context(), "COPY (SELECT range::INTEGER AS id, 'x' || range % 3 AS word, DATE '2024-01-01' AS day, NULL::DECIMAL(9,2) AS amount, 0.5::FLOAT AS ratio FROM range(30)) TO '"+strings.ReplaceAll(path, "'", "''")+"'"))
		table, err := x.Examine(t.Context(), project.Parquet, ports.Artifact{Name: "a.parquet", Path: path})
		mustLake(t, err)
		if got := chosenColumns(table); table.Rows != 30 || got != "id INTEGER, word VARCHAR, day DATE, amount DECIMAL(9,2), ratio DOUBLE" {
			t.Errorf("%d rows of %s", table.Rows, got)
		}
		mustLake(t, c.Exec(t.Context(), "COPY (SELECT INTERVAL 1 DAY AS span) TO '"+strings.ReplaceAll(path, "'", "''")+"'"))
		_, err = x.Examine(t.Context(), project.Parquet, ports.Artifact{Name: "a.parquet", Path: path})
		if fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), `"span"`) || strings.Contains(err.Error(), path) {
			t.Errorf("a column that no source declares: %v", err)
		}
		mustLake(t, os.WriteFile(path, []byte("PAR1 not at all"), 0o600))
		_, err = x.Examine(t.Context(), project.Parquet, ports.Artifact{Name: "a.parquet", Path: path})
		if fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), "a.parquet") || strings.Contains(err.Error(), path) {
			t.Errorf("no Parquet file: %v", err)
		}
	})
}

func chosenColumns(t draft.Table) string {
	var out []string
	for _, c := range draft.Plan([]draft.Table{t})[0].Choices {
		out = append(out, c.Column.Name+" "+string(c.Column.Type))
	}
	return strings.Join(out, ", ")
}

// examinerSuite is the contract of ports.Examiner.
func examinerSuite(t *testing.T, open func(t *testing.T) examinerUnderTest) {
	x := open(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte("id;name\n1;a\n2;\n"))
	mustLake(t, err)
	mustLake(t, z.Close())
	for _, tc := range []struct {
		name    string
		format  project.Format
		content []byte
		rows    int64
		columns string
	}{
		{"a.csv", project.CSV, []byte("id,at\n1,2024-01-01\n2,2024-02-29\n"), 2, "id BIGINT, at DATE"},
		{"a.csv.gz", project.CSV, packed.Bytes(), 2, "id BIGINT, name VARCHAR"},
		{"a.json", project.JSON, []byte(`[{"id": 1}, {"id": 2.5}]`), 2, "id DECIMAL(18,1)"},
	} {
		table, err := x.Examine(t.Context(), tc.format, x.stage(t, tc.name, tc.content))
		mustLake(t, err)
		if got := chosenColumns(table); table.Rows != tc.rows || got != tc.columns || table.Name != tc.name {
			t.Errorf("%s: %d rows of %s in %s", tc.name, table.Rows, got, table.Name)
		}
	}
	for name, content := range map[string]string{"ragged.csv": "a,b\n1\n", "cut.csv.gz": packed.String()[:20], "no.csv.gz": "a,b\n"} {
		_, err := x.Examine(t.Context(), project.CSV, x.stage(t, name, []byte(content)))
		wantKind(t, err, fail.Invalid)
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	_, err = x.Examine(canceled(t), project.CSV, x.stage(t, "b.csv", []byte("a\n1\n")))
	wantKind(t, err, fail.Canceled)
}

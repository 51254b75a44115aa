package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// Proves: the files of a project are read, sorted, and what lies beside them is left alone.
func TestReadProject(t *testing.T) {
	dir := t.TempDir()
	want := []string{"endpoints/e.sql", "leapview.yaml", "models/a.sql", "models/b.sql", "sources/s.yaml"}
	for _, p := range append([]string{"README.md", "notes.txt", ".git/config", ".leapview/leapview.db", "data/x.csv", "models/.a.sql.swp", "models/a.sql~", "models/a.sql.bak", "models/#a.sql#", "models/README.md", "sources/.keep"}, want...) {
		write(t, filepath.Join(dir, p), "content of "+p)
	}
	link(t, "/etc", filepath.Join(dir, "elsewhere"))
	files, err := ReadProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
		if string(f.Content) != "content of "+f.Path {
			t.Errorf("%s holds %q", f.Path, f.Content)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if _, err := project.Pack(files); err != nil {
		t.Error(err)
	}
}

// Proves: a file that its author believes to count, and that does not, is a problem; all of them are reported at once, and links
// are not followed.
func TestReadProjectProblems(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "leapview.yaml"), "name: x")
	write(t, filepath.Join(dir, "sources", "s.yml"), "x")
	write(t, filepath.Join(dir, "models", "m.sq"), "x")
	write(t, filepath.Join(dir, "models", "deep", "m.sql"), "x")
	link(t, "/etc/hostname", filepath.Join(dir, "models", "l.sql"))
	link(t, "models", filepath.Join(dir, "endpoints"))
	_, err := ReadProject(dir)
	if fail.KindOf(err) != fail.Invalid {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"endpoints: it is not a folder", "models/deep: folders inside models", "models/l.sql: it is not a regular file", "models/m.sq: a file in models ends in .sql", "sources/s.yml: a file in sources ends in .yaml"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

// Proves: a folder that is no project is named as such, and the bounds on count and size hold.
func TestReadProjectBounds(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadProject(filepath.Join(dir, "nowhere"))
	refused(t, err, "project_missing", "nowhere")
	_, err = ReadProject(dir)
	refused(t, err, "not_a_project", dir, "leapview.yaml")
	write(t, filepath.Join(dir, "Leapview.yml"), "name: x")
	_, err = ReadProject(dir)
	refused(t, err, "not_a_project", `did you mean "Leapview.yml"? rename it to leapview.yaml`)
	if err := os.Remove(filepath.Join(dir, "Leapview.yml")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "leapview.yaml"), strings.Repeat("#", project.MaxFileBytes+1))
	_, err = ReadProject(filepath.Join(dir, "leapview.yaml"))
	refused(t, err, "project_missing", "leapview.yaml")
	_, err = ReadProject(dir)
	refused(t, err, "project_file_bytes", "leapview.yaml", "limit project_file_bytes = 1048576")
	write(t, filepath.Join(dir, "leapview.yaml"), strings.Repeat("#", project.MaxFileBytes))
	if _, err = ReadProject(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "models"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range project.MaxFiles - 1 {
		write(t, filepath.Join(dir, "models", fmt.Sprintf("m%d.sql", i)), "SELECT 1")
	}
	if files, err := ReadProject(dir); err != nil || len(files) != project.MaxFiles {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for i := range maxStrays + 1 {
		write(t, filepath.Join(dir, "elsewhere", fmt.Sprintf("m%d.sql", i)), "SELECT 1")
	}
	_, err = ReadProject(dir)
	if problems, ok := err.(project.Problems); !ok || len(problems) != maxStrays {
		t.Errorf("%d problems: %v", len(problems), err)
	}
	write(t, filepath.Join(dir, "models", "more.sql"), "SELECT 1")
	_, err = ReadProject(dir)
	refused(t, err, "project_files", "limit project_files = 1000")
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mattn/go-sqlite3"
	"go.uber.org/goleak"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/migrations"
	"leapview/ports"
)

// endless never gives a row and never ends.
const endless = `WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0`

// The variables that make this test binary the child process of a test.
const (
	childPath  = "LEAPVIEW_TEST_OPEN"
	childSteps = "LEAPVIEW_TEST_STEPS"
	childUID   = "LEAPVIEW_TEST_UID"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		os.Exit(child(path))
	}
	goleak.VerifyTestMain(m)
}

// child opens the control plane at path and says how that went.
func child(path string) int {
	if os.Getenv(childUID) != "" {
		if err := errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			fmt.Println(err)
			return 2
		}
	}
	s, err := Open(context.Background(), Options{Path: path, steps: namedSteps(os.Getenv(childSteps))})
	if err != nil {
		fmt.Printf("%s %s %v\n", fail.KindOf(err), fail.CodeOf(err), err)
		return 1
	}
	if err := s.Close(); err != nil {
		fmt.Println(err)
		return 2
	}
	return 0
}

// realSteps are the files of this binary's steps, up or down, from the first to the last.
func realSteps(way string) []string {
	files, err := fs.Glob(migrations.Files, "*."+way+".sql")
	if err != nil {
		panic(err)
	}
	slices.Sort(files)
	return files
}

// latest is the schema version of this binary.
var latest = len(realSteps("up"))

// before is the ending of the copy that is kept from before the version.
func before(version int) string { return fmt.Sprintf(".before-v%04d", version) }

// namedSteps are the schemas of imagined binaries; nil is this one's.
func namedSteps(name string) fs.FS {
	read := func(file string) string {
		b, err := migrations.Files.ReadFile(file)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	var real []string
	for _, file := range realSteps("up") {
		real = append(real, read(file))
	}
	steps := func(bodies ...string) fs.FS {
		m := fstest.MapFS{}
		for i, body := range bodies {
			m[fmt.Sprintf("%04d_step.up.sql", i+1)] = &fstest.MapFile{Data: []byte(body)}
		}
		return m
	}
	// next are the steps of binaries to come, after the real ones.
	next := func(bodies ...string) fs.FS { return steps(append(slices.Clone(real), bodies...)...) }
	const second = `CREATE TABLE later (x INTEGER NOT NULL) STRICT; INSERT INTO later VALUES (42);`
	switch name {
	case "two":
		return next(second)
	case "three":
		return next(second, `ALTER TABLE later ADD COLUMN y TEXT;`)
	case "two, the first hangs":
		return steps(append([]string{real[0] + endless}, append(slices.Clone(real[1:]), second)...)...)
	case "two, the second hangs":
		return next(second + `CREATE TABLE sink (x INTEGER) STRICT; INSERT INTO sink ` + endless)
	case "two, hanging before the second is marked clean":
		return next(second + `CREATE TRIGGER hang AFTER INSERT ON schema_migrations WHEN NOT new.dirty BEGIN INSERT INTO later ` + endless + `; END;`)
	case "two, the second is wrong":
		return next(second + `INSERT INTO nowhere VALUES (1);`)
	}
	return nil
}

// open opens with the named steps and closes with the test.
func open(t *testing.T, path, steps string) *Store {
	t.Helper()
	s, err := Open(context.Background(), Options{Path: path, steps: namedSteps(steps)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// refusedOpen opens with the named steps, which must fail, and gives the error.
func refusedOpen(t *testing.T, path, steps string) error {
	t.Helper()
	s, err := Open(context.Background(), Options{Path: path, steps: namedSteps(steps)})
	if err == nil {
		closeStore(t, s)
		t.Fatal("it opened")
	}
	return err
}

// beside runs f on a connection of its own.
func beside(t *testing.T, path string, f func(*sql.DB) error) {
	t.Helper()
	db, err := sql.Open("sqlite3", path+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f(db), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// version reads the file's schema version as another program would.
func version(t *testing.T, path string) (v int, dirty bool) {
	t.Helper()
	beside(t, path, func(db *sql.DB) error {
		return db.QueryRow(`SELECT version, dirty FROM schema_migrations`).Scan(&v, &dirty)
	})
	return v, dirty
}

// remember stores something that an upgrade must keep; recalled tells whether it is there.
func remember(t *testing.T, s *Store) {
	t.Helper()
	if err := s.RecordLake(context.Background(), ports.LakeRecord{Lineage: "kept"}); err != nil {
		t.Fatal(err)
	}
}

func recalled(t *testing.T, s *Store) {
	t.Helper()
	r, err := s.Lake(context.Background())
	if err != nil || r.Lineage != "kept" {
		t.Fatalf("what was stored before is %v, %v", r, err)
	}
}

// names lists the directory of path.
func names(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// TestFilesArePrivate proves that the control plane, its log and the kept copy are readable by their owner alone, also when the
// file was more open before, and that a closed control plane is one file.
func TestFilesArePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd name?#%.db")
	s := open(t, path, "")
	remember(t, s)
	private := func() {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			info, err := os.Stat(f)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", f, info.Mode(), err)
			}
		}
	}
	private()
	closeStore(t, s)
	if got := names(t, path); got != "odd name?#%.db" {
		t.Fatalf("a closed control plane leaves %s", got)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, "two")
	recalled(t, s)
	private()
}

// TestSettings proves how the connections are set up: the log and its durability, foreign keys, and that a reader cannot write.
func TestSettings(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "leapview.db"), "")
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": busyMillis} {
		var got string
		if err := s.write.QueryRow(`PRAGMA ` + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("writer's %s is %s, %v, want %s", pragma, got, err, want)
		}
	}
	if n := s.write.Stats().MaxOpenConnections; n != 1 {
		t.Errorf("%d connections write", n)
	}
	for _, statement := range []string{`INSERT INTO lake VALUES (1, 'eve', 0)`, `CREATE TABLE t (x)`, `PRAGMA query_only = 0; DELETE FROM lake`} {
		_, err := s.read.Exec(statement)
		var lite sqlite3.Error
		if !errors.As(err, &lite) || lite.Code != sqlite3.ErrReadonly {
			t.Errorf("a reader's %s gave %v", statement, err)
		}
	}
	// A reader that holds its transaction open does not hold up the writer, and keeps seeing what it saw.
	tx, err := s.read.Begin()
	if err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		if err := tx.QueryRow(`SELECT count(*) FROM lake`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	remember(t, s)
	if after := count(); before != 0 || after != 0 {
		t.Errorf("the reader saw %d, then %d", before, after)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// TestSchemaIsStrict proves that every table of ours is STRICT, and that the schema itself refuses wrong types, impossible
// values and dangling references.
func TestSchemaIsStrict(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "leapview.db"), "")
	rows, err := s.read.Query(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict AND name NOT LIKE 'sqlite%'`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if name != "schema_migrations" {
			t.Errorf("table %s is not STRICT", name)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	good := string(project.DigestOf(nil))
	if _, err := s.write.Exec(`INSERT INTO workspaces VALUES ('flights', 3, 0, 'bob'); INSERT INTO releases VALUES ('flights', '` + good + `', 1, 0, 'bob');
		INSERT INTO audit_events (at, principal, action, target, outcome, detail) VALUES (0, 'bob', 'a', 't', 'ok', '{}')`); err != nil {
		t.Fatal(err)
	}
	for name, statement := range map[string]string{
		"text for an integer":   `UPDATE workspaces SET fence = 'three'`,
		"fence zero":            `UPDATE workspaces SET fence = 0`,
		"fence twice":           `INSERT INTO workspaces VALUES ('other', 3, 0, 'bob')`,
		"a name out of form":    `INSERT INTO workspaces VALUES ('Other', NULL, 0, 'bob')`,
		"short digest":          `INSERT INTO releases VALUES ('flights', 'abc', 1, 0, 'bob')`,
		"upper-case digest":     `INSERT INTO releases VALUES ('flights', '` + strings.ToUpper(good) + `', 1, 0, 'bob')`,
		"no such workspace":     `INSERT INTO releases VALUES ('nowhere', '` + good + `', 1, 0, 'bob')`,
		"unknown status":        `INSERT INTO runs VALUES (1, 'r', 'flights', NULL, 'odd', 0, NULL, 0, '', NULL, 0, NULL, NULL, '', '', '', NULL, NULL, 0)`,
		"running unclaimed":     `INSERT INTO runs VALUES (1, 'r', 'flights', NULL, 'running', 0, NULL, 0, '', NULL, 0, NULL, NULL, '', '', '', NULL, NULL, 0)`,
		"more stops than tries": `INSERT INTO runs VALUES (1, 'r', 'flights', NULL, 'queued', 0, NULL, 0, '', NULL, 0, NULL, NULL, '', '', '', NULL, NULL, 1)`,
		"unknown protection":    `INSERT INTO protections VALUES ('flights', 'because', 'me', 1, 0)`,
		"a second lake":         `INSERT INTO lake VALUES (2, 'l', 0)`,
		"audit that is edited":  `UPDATE audit_events SET principal = 'eve'`,
		"audit that is erased":  `DELETE FROM audit_events`,
		"audit without detail":  `INSERT INTO audit_events (at, principal, action, target, outcome, detail) VALUES (0, 'b', 'a', 't', 'ok', '[]')`,
		"a key in the clear":    `INSERT INTO keys VALUES (1, 'abcdefgh', 'secret', 'viewer', NULL, 'l', 0, 'bob', NULL, NULL)`,
		"a key without a role":  `INSERT INTO keys VALUES (1, 'abcdefgh', '` + good + `', 'god', NULL, 'l', 0, 'bob', NULL, NULL)`,
		"a key for nowhere":     `INSERT INTO keys VALUES (1, 'abcdefgh', '` + good + `', 'viewer', 'nowhere', 'l', 0, 'bob', NULL, NULL)`,
	} {
		var lite sqlite3.Error
		if _, err := s.write.Exec(statement); !errors.As(err, &lite) || lite.Code != sqlite3.ErrConstraint {
			t.Errorf("%s gave %v", name, err)
		}
	}
}

// TestDownUndoesUp proves that the down steps remove all that the up steps made.
func TestDownUndoesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leapview.db")
	closeStore(t, open(t, path, ""))
	var down string
	for _, file := range slices.Backward(realSteps("down")) {
		b, err := migrations.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		down += string(b)
	}
	beside(t, path, func(db *sql.DB) error {
		if _, err := db.Exec(`PRAGMA foreign_keys = 1; ` + down); err != nil {
			return err
		}
		var left string
		if err := db.QueryRow(`SELECT coalesce(group_concat(name), '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' AND tbl_name <> 'schema_migrations'`).Scan(&left); err != nil {
			return err
		}
		if left != "" {
			t.Errorf("left: %s", left)
		}
		return nil
	})
}

// TestUpgradeKeepsACopy proves that an older schema is upgraded, that what was stored stays, that the copy beside it is the file
// from before, and that only the newest copy is kept.
func TestUpgradeKeepsACopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leapview.db")
	s := open(t, path, "")
	remember(t, s)
	closeStore(t, s)
	s = open(t, path, "two")
	recalled(t, s)
	closeStore(t, s)
	if got := names(t, path); got != "leapview.db leapview.db"+before(latest+1) {
		t.Fatalf("after the upgrade: %s", got)
	}
	if v, dirty := version(t, path); v != latest+1 || dirty {
		t.Fatalf("version %d, dirty %v", v, dirty)
	}
	if v, dirty := version(t, path+before(latest+1)); v != latest || dirty {
		t.Fatalf("the copy's version is %d, dirty %v", v, dirty)
	}
	s = open(t, path+before(latest+1), "")
	recalled(t, s)
	closeStore(t, s)
	closeStore(t, open(t, path, "three"))
	if got := names(t, path); got != "leapview.db leapview.db"+before(latest+2) {
		t.Fatalf("after the next upgrade: %s", got)
	}
}

// TestNewerSchemaIsRefused proves that a file of a newer binary is refused with both versions and the ways out, and is not
// touched, dirty or not; and that the way back named there works.
func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leapview.db")
	s := open(t, path, "")
	remember(t, s)
	closeStore(t, s)
	closeStore(t, open(t, path, "two"))
	for _, dirty := range []bool{false, true} {
		beside(t, path, func(db *sql.DB) error {
			_, err := db.Exec(`UPDATE schema_migrations SET dirty = ?`, dirty)
			return err
		})
		err := refusedOpen(t, path, "")
		if fail.KindOf(err) != fail.Conflict || fail.CodeOf(err) != "newer_schema" {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{path, fmt.Sprintf("version %d", latest+1), fmt.Sprintf("up to %d", latest), "newer binary", "leapview.db" + before(latest+1)} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
		if v, d := version(t, path); v != latest+1 || d != dirty {
			t.Fatalf("the refused file became version %d, dirty %v", v, d)
		}
	}
	if err := os.Rename(path+before(latest+1), path); err != nil {
		t.Fatal(err)
	}
	recalled(t, open(t, path, ""))
}

// TestKilledUpgradeHeals proves, with a real process that is killed at exactly that point, that an upgrade which died within a
// step, or after a step and before it was marked clean, is undone and done again, also the very first, and loses nothing.
func TestKilledUpgradeHeals(t *testing.T) {
	for _, tc := range []struct {
		steps   string
		from    bool
		version int
		// landed is a table that shows, once it is there, that the step was committed.
		landed string
	}{
		{steps: "two, the first hangs", version: 1},
		{steps: "two, the second hangs", from: true, version: latest + 1},
		{steps: "two, hanging before the second is marked clean", from: true, version: latest + 1, landed: "later"},
	} {
		t.Run(tc.steps, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leapview.db")
			// What an earlier control plane of this directory left must not be taken for the copy of this one.
			write(t, path+before(latest+1), []byte("of another control plane"))
			if tc.from {
				s := open(t, path, "")
				remember(t, s)
				closeStore(t, s)
			}
			killWhen(t, path, tc.steps, func(db *sql.DB) bool {
				var v, landed int
				var dirty bool
				if db.QueryRow(`SELECT version, dirty FROM schema_migrations`).Scan(&v, &dirty) != nil {
					return false
				}
				if db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = ?`, tc.landed).Scan(&landed) != nil {
					return false
				}
				return v == tc.version && dirty && (tc.landed == "" || landed == 1)
			})
			if v, dirty := version(t, path); v != tc.version || !dirty {
				t.Fatalf("the killed upgrade left version %d, dirty %v", v, dirty)
			}
			s := open(t, path, "two")
			if tc.from {
				recalled(t, s)
			}
			var x int
			if err := s.read.QueryRow(`SELECT x FROM later`).Scan(&x); err != nil || x != 42 {
				t.Fatalf("after healing: %d, %v", x, err)
			}
			closeStore(t, s)
			if v, dirty := version(t, path); v != latest+1 || dirty {
				t.Fatalf("after healing: version %d, dirty %v", v, dirty)
			}
			if got := names(t, path); got != "leapview.db leapview.db"+before(latest+1) {
				t.Fatalf("after healing: %s", got)
			}
		})
	}
}

// killWhen opens path in a child process, waits until reached says so of the file, and kills the child.
func killWhen(t *testing.T, path, steps string, reached func(*sql.DB) bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path, childSteps+"="+steps)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	kill := func() error {
		err := cmd.Process.Kill()
		<-ended
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			found := false
			beside(t, path, func(db *sql.DB) error { found = reached(db); return nil })
			if found {
				break
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("the child ended by itself: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the child never came to the point: %v", kill())
		}
	}
	if err := kill(); err != nil {
		t.Fatal(err)
	}
}

// TestHealingAcrossBinaries proves that a newer binary undoes what an older one left half done, that a step which fails is undone
// at once, so that the older binary goes on, and that a half upgraded file without its copy is refused.
func TestHealingAcrossBinaries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leapview.db")
	s := open(t, path, "")
	remember(t, s)
	closeStore(t, s)
	err := refusedOpen(t, path, "two, the second is wrong")
	if !strings.Contains(err.Error(), "nowhere") || strings.Contains(err.Error(), "CREATE TABLE") {
		t.Fatalf("a wrong step gave %v", err)
	}
	if v, dirty := version(t, path); v != latest || dirty {
		t.Fatalf("a wrong step left version %d, dirty %v", v, dirty)
	}
	s = open(t, path, "")
	recalled(t, s)
	closeStore(t, s)
	// As a kill leaves it: the copy from the refused upgrade is still beside the file.
	halfDone := func(db *sql.DB) error {
		_, err := db.Exec(`UPDATE schema_migrations SET version = ?, dirty = 1; CREATE TABLE later (half INTEGER)`, latest+1)
		return err
	}
	beside(t, path, halfDone)
	s = open(t, path, "three")
	recalled(t, s)
	closeStore(t, s)
	if v, dirty := version(t, path); v != latest+2 || dirty {
		t.Fatalf("version %d, dirty %v", v, dirty)
	}
	beside(t, path, func(db *sql.DB) error {
		_, err := db.Exec(`UPDATE schema_migrations SET dirty = 1`)
		return err
	})
	if err := os.Remove(path + before(latest+2)); err != nil {
		t.Fatal(err)
	}
	err = refusedOpen(t, path, "three")
	if fail.KindOf(err) != fail.Corrupt || fail.CodeOf(err) != "half_upgraded" || !strings.Contains(err.Error(), path) {
		t.Fatalf("without its copy: %v", err)
	}
}

// TestRefusedFiles proves that a file which is not a sound control plane gives an error that names it and its kind, and stays as
// it was.
func TestRefusedFiles(t *testing.T) {
	noise := []byte(strings.Repeat("this is no database. ", 500))
	for _, tc := range []struct {
		name string
		make func(t *testing.T, path string)
		kind fail.Kind
		code string
	}{
		{"noise", func(t *testing.T, path string) { write(t, path, noise) }, fail.Corrupt, "control_corrupt"},
		{"a damaged first page", func(t *testing.T, path string) {
			closeStore(t, open(t, path, ""))
			b := read(t, path)
			for i := 100; i < 4096; i++ {
				b[i] = 0xA5
			}
			write(t, path, b)
		}, fail.Corrupt, "control_corrupt"},
		{"another program's database", func(t *testing.T, path string) {
			beside(t, path, func(db *sql.DB) error { _, err := db.Exec(`CREATE TABLE songs (name)`); return err })
		}, fail.Conflict, "foreign_database"},
		{"a directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, fail.Invalid, "not_a_file"},
		{"no directory", func(t *testing.T, path string) {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		}, fail.Corrupt, "no_data_directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dir", "leapview.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			tc.make(t, path)
			err := refusedOpen(t, path, "")
			if fail.KindOf(err) != tc.kind || fail.CodeOf(err) != tc.code || !strings.Contains(err.Error(), filepath.Dir(path)) || fail.FixOf(err) == "" {
				t.Errorf("got %s, %s: %v", fail.KindOf(err), fail.CodeOf(err), err)
			}
			if tc.name == "noise" && string(read(t, path)) != string(noise) {
				t.Error("the refused file was changed")
			}
		})
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDamageWhileOpen proves that damage met after the start is an error of kind corrupt that names the file.
func TestDamageWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leapview.db")
	s := open(t, path, "")
	var page, size int64
	if err := s.read.QueryRow(`SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'workspaces'`).Scan(&page, &size); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	b := read(t, path)
	copy(b[(page-1)*size:page*size], strings.Repeat("\xA5", int(size)))
	write(t, path, b)
	s = open(t, path, "")
	_, err := s.Load(context.Background(), refresh.Scope{Workspace: "flights"})
	if fail.KindOf(err) != fail.Corrupt || !strings.Contains(err.Error(), path) {
		t.Errorf("got %s: %v", fail.KindOf(err), err)
	}
}

// TestImpossibleRowsAreRefused proves that rows which pass the file's own checks and still cannot be ours are refused as corrupt.
func TestImpossibleRowsAreRefused(t *testing.T) {
	digest := string(project.DigestOf(nil))
	for name, damage := range map[string]string{
		"unknown stage":         `UPDATE attempts SET stage = 'odd'`,
		"begun with files":      `INSERT INTO candidate_files VALUES (1, 'f', 1, '` + digest + `')`,
		"no fence":              `UPDATE attempts SET fence = 0`,
		"behind its base":       `UPDATE attempts SET stage = 'committed', snapshot = 3, base = 4`,
		"unknown status":        `UPDATE runs SET status = 'odd'`,
		"pointer to nothing":    `INSERT INTO serving_pointers VALUES ('flights', 0, 0, '` + digest + `', '` + digest + `', 'run1', 0, 0, '')`,
		"pointer to no attempt": `INSERT INTO serving_pointers VALUES ('flights', 1, 9, '` + digest + `', '` + digest + `', 'run1', 0, 0, '')`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leapview.db")
			s := open(t, path, "")
			remember(t, s)
			if _, err := s.write.Exec(strings.ReplaceAll(`INSERT INTO workspaces VALUES ('flights', 1, 0, 'bob'); INSERT INTO releases VALUES ('flights', ?1, 1, 0, 'bob');
				INSERT INTO deployments VALUES ('flights', 1, ?1, '/', 0, 'bob');
				INSERT INTO runs VALUES (1, 'run1', 'flights', NULL, 'running', 1, 1, 0, '', 'boot', 1, 0, NULL, '', '', '', NULL, NULL, 0);
				INSERT INTO attempts VALUES (1, 'flights', 'run1', 1, 'kept', 0, ?1, ?1, 'boot', 0, 0, 'begun', NULL, NULL)`, "?1", "'"+digest+"'")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}); err != nil {
				t.Fatalf("before the damage: %v", err)
			}
			beside(t, path, func(db *sql.DB) error {
				_, err := db.Exec(`PRAGMA ignore_check_constraints = 1; PRAGMA foreign_keys = 0; ` + damage)
				return err
			})
			_, err := s.Load(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"})
			_, filesErr := s.Files(context.Background(), "flights")
			if fail.KindOf(errors.Join(err, filesErr)) != fail.Corrupt {
				t.Errorf("got %v, %v", err, filesErr)
			}
		})
	}
}

// TestLockedByAnotherProcess proves that a lock which another connection keeps is an error of kind busy, after a bounded wait, that
// an ended context is told as such, and that the store goes on afterwards.
func TestLockedByAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leapview.db")
	s := open(t, path, "")
	beside(t, path, func(db *sql.DB) error {
		db.SetMaxOpenConns(1)
		if _, err := db.Exec(`BEGIN IMMEDIATE`); err != nil {
			return err
		}
		start := time.Now()
		err := s.RecordLake(context.Background(), ports.LakeRecord{Lineage: "kept"})
		if took := time.Since(start); fail.KindOf(err) != fail.Busy || !strings.Contains(err.Error(), path) || took > 15*time.Second {
			t.Errorf("got %s after %s: %v", fail.KindOf(err), took, err)
		}
		// Readers do not wait for a writer.
		if _, err := s.Lake(context.Background()); err != nil {
			t.Errorf("a reader beside a writer got %v", err)
		}
		short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := s.RecordLake(short, ports.LakeRecord{Lineage: "kept"}); fail.KindOf(err) != fail.Canceled {
			t.Errorf("an ended context got %s: %v", fail.KindOf(err), err)
		}
		_, err = db.Exec(`ROLLBACK`)
		return err
	})
	remember(t, s)
	recalled(t, s)
}

// TestCommitErrors proves which errors of a COMMIT are told as an unknown outcome, and which as nothing written.
func TestCommitErrors(t *testing.T) {
	s := &Store{path: "/data/leapview.db"}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tc := range []struct {
		ctx  context.Context
		err  error
		kind fail.Kind
	}{
		{context.Background(), sqlite3.Error{Code: sqlite3.ErrFull}, fail.Limit},
		{context.Background(), sqlite3.Error{Code: sqlite3.ErrBusy}, fail.Busy},
		{context.Background(), sqlite3.Error{Code: sqlite3.ErrConstraint, ExtendedCode: sqlite3.ErrConstraintForeignKey}, fail.Internal},
		{context.Background(), sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErrFsync}, fail.Fatal},
		{context.Background(), sqlite3.Error{Code: sqlite3.ErrCorrupt}, fail.UnknownOutcome},
		{ended, sqlite3.Error{Code: sqlite3.ErrIoErr}, fail.Fatal},
		{ended, context.Canceled, fail.Canceled},
		{ended, sql.ErrTxDone, fail.Canceled},
	} {
		if got := s.commitError(tc.ctx, tc.err); fail.KindOf(got) != tc.kind {
			t.Errorf("%v became %s: %v, want %s", tc.err, fail.KindOf(got), got, tc.kind)
		}
	}
	if err := s.commitError(context.Background(), nil); err != nil {
		t.Error(err)
	}
	// After a failed sync nothing is asked of the file any more.
	if err := s.change(context.Background(), "write", nil); fail.KindOf(err) != fail.Fatal || fail.KindOf(s.Fatal()) != fail.Fatal {
		t.Errorf("after a failed sync: %v, %v", err, s.Fatal())
	}
}

// TestDirectoryOfAnotherUser proves that a directory or file which this user may not write is refused at once, with its owner, its
// mode and the way out. The child gives up root's rights first, since root may write everywhere.
func TestDirectoryOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "leapview.db")
	closeStore(t, open(t, path, ""))
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Error(err)
		}
	})
	for _, tc := range []struct {
		mode os.FileMode
		what string
	}{{0o555, dir}, {0o777, path}} {
		if err := os.Chmod(dir, tc.mode); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childPath+"="+path)
		if os.Geteuid() == 0 {
			cmd.Env = append(cmd.Env, childUID+"=65534")
		} else if tc.what == path {
			// Without root there is no second user whose file it could be, so the file refuses its owner.
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Fatalf("the child: %v, %s", err, out)
		}
		for _, part := range []string{"unavailable not_writable " + tc.what, fmt.Sprintf("belongs to uid %d with mode", os.Geteuid()), "run as its owner"} {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s does not say %q", out, part)
			}
		}
	}
}

// BenchmarkUpdate measures one durable decision.
func BenchmarkUpdate(b *testing.B) {
	s, err := Open(context.Background(), Options{Path: filepath.Join(b.TempDir(), "leapview.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}()
	release, now := project.DigestOf(nil), time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		err := s.Update(context.Background(), refresh.Scope{Workspace: "flights"}, func(st refresh.State) ([]refresh.Event, error) {
			_, events, err := st.Deploy(release, 1, "/", now, "bob")
			return events, err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

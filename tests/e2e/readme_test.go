package e2e

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"leapview/tests/nodetest"
)

// fence is a fenced block of a Markdown page.
var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// tree copies the repository without what git leaves out, so that the commands of README.md have the folder that a newcomer has.
func tree(t *testing.T) string {
	t.Helper()
	root, dir := nodetest.Root(t), t.TempDir()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case rel == ".":
			return nil
		case e.IsDir() && (strings.HasPrefix(rel, ".") || rel == "bin"):
			return fs.SkipDir
		case e.IsDir():
			return os.Mkdir(filepath.Join(dir, rel), 0o700)
		case !e.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, rel), b, 0o600)
	})
	if err == nil {
		err = os.Symlink(nodetest.Extensions(t), filepath.Join(dir, ".extensions"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Proves that the first five minutes of README.md are true as printed: each command of that section runs in a copy of the repository and
// ends well or with the mistake that the page shows, and what the page shows of its output is there.
func TestFirstFiveMinutes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(nodetest.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## First five minutes\n")
	if !ok {
		t.Fatal("README.md has no first five minutes")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	r := reader{t: t, dir: tree(t)}
	began := time.Now()
	var commands, outputs int
	for _, block := range fence.FindAllStringSubmatch(section, -1) {
		switch block[1] {
		case "sh":
			r.said = ""
			for _, line := range strings.Split(strings.TrimSpace(block[2]), "\n") {
				r.run(line)
				commands++
			}
		case "text":
			if !strings.Contains(r.said, block[2]) {
				t.Fatalf("README.md shows\n%sand the commands before it said\n%s", block[2], r.said)
			}
			outputs++
		default:
			t.Fatalf("a block of kind %q is neither commands nor output", block[1])
		}
	}
	r.stop()
	if commands < 8 || outputs < 2 {
		t.Errorf("the section has %d commands and %d outputs", commands, outputs)
	}
	t.Logf("the first five minutes took %s", time.Since(began).Round(time.Millisecond))
}

// reader does what README.md says.
type reader struct {
	t   *testing.T
	dir string
	// said is what the commands of the block wrote.
	said string
	// dev is what stays running, url where it answers, and wrote what it writes.
	dev   *exec.Cmd
	url   string
	wrote *bytes.Buffer
}

// printedURL is where the page's node answers. Here it takes a free port.
const printedURL = "http://127.0.0.1:8080"

func (r *reader) command(line string) *exec.Cmd {
	c := exec.Command("bash", "-c", "exec "+line)
	c.Dir = r.dir
	c.Env = append(os.Environ(), "LEAPVIEW_LISTEN=127.0.0.1:0")
	return c
}

func (r *reader) run(line string) {
	r.t.Helper()
	switch {
	case strings.HasPrefix(line, "bin/leapview dev "):
		r.start(line)
	case strings.HasPrefix(line, "curl '"+printedURL):
		// curl need not be there.
		r.said += r.get(r.url + strings.TrimSuffix(strings.TrimPrefix(line, "curl '"+printedURL), "'"))
	default:
		out, err := r.command(line).CombinedOutput()
		r.said += string(out)
		// The page breaks a file on purpose, and shows what is said.
		if err != nil && !bytes.Contains(out, []byte("leapview: 1 problem was found")) {
			r.t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
}

func (r *reader) start(line string) {
	r.t.Helper()
	r.dev, r.wrote = r.command(line), &bytes.Buffer{}
	out, err := r.dev.StdoutPipe()
	if err == nil {
		r.dev.Stderr = r.wrote
		err = r.dev.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if r.dev.ProcessState == nil {
			_ = r.dev.Process.Kill()
			_ = r.dev.Wait()
		}
	})
	if _, err := fmt.Fscanf(out, "READY %s\n", &r.url); err != nil {
		r.t.Fatalf("dev did not become ready: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

// get asks until the answer is there: dev refreshes while the page's reader changes terminals.
func (r *reader) get(url string) string {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(url)
		if err != nil {
			r.t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil && res.StatusCode == http.StatusOK {
			return string(b)
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("GET %s: %s %v\n%s", url, res.Status, err, b)
		}
	}
}

// stop ends what stays as Control-C does.
func (r *reader) stop() {
	r.t.Helper()
	if r.dev == nil {
		r.t.Fatal("the page starts no dev")
	}
	if err := r.dev.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
	if err := r.dev.Wait(); err != nil {
		r.t.Fatalf("dev ended with %v\n%s", err, r.wrote)
	}
}

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/project"
)

const extensionFix = "run make extensions, or name their directory with --extensions"

// extension is one line of extensions.lock.
type extension struct {
	name, engine, platform string
	digest                 project.Digest
}

// platform is this process's name in extensions.lock.
func platform() string { return runtime.GOOS + "_" + runtime.GOARCH }

// lockedExtensions are the extensions that the lock accepts on the platform: all of them are loaded, and nothing else.
func lockedExtensions(lock, platform string) ([]extension, error) {
	var found []extension
	var known []string
	for i, line := range strings.Split(lock, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 4 || !project.ValidName(f[0]) {
			return nil, fail.New(fail.Invalid, "bad_extensions_lock", "extensions.lock line %d is not a name, an engine version, a platform and a SHA-256: %q", i+1, line)
		}
		digest, err := project.ParseDigest(f[3])
		if err != nil {
			return nil, fail.New(fail.Invalid, "bad_extensions_lock", "extensions.lock line %d", i+1).Because(err)
		}
		known = append(known, f[2])
		if f[2] == platform {
			found = append(found, extension{name: f[0], engine: f[1], platform: f[2], digest: digest})
		}
	}
	if len(found) == 0 {
		return nil, fail.New(fail.Invalid, "extension_platform", "extensions.lock has no extension for %s", platform).
			WithFix("run on one of: %s", strings.Join(known, ", "))
	}
	return found, nil
}

// path is the extension's file; the engine derives the entry point from the file's base name.
func (x extension) path(dir string) string { return filepath.Join(dir, x.name+".duckdb_extension") }

// verify proves that the file is the one that the lock names.
func (x extension) verify(dir string) error {
	path := x.path(dir)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fail.New(fail.Missing, "extension_missing", "extension %s is not at %s", x.name, path).WithFix(extensionFix)
	}
	if err != nil {
		return fail.New(fail.Unavailable, "extension_unreadable", "extension %s cannot be read", x.name).Because(err).WithFix(extensionFix)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fail.New(fail.Unavailable, "extension_unreadable", "extension file %s cannot be read", path).Because(err).WithFix(extensionFix)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != string(x.digest) {
		return fail.New(fail.Corrupt, "extension_altered", "extension file %s has SHA-256 %s, but extensions.lock names %s for %s on DuckDB %s", path, got, x.digest, x.platform, x.engine).
			WithFix(extensionFix)
	}
	return nil
}

// HasExtensions tells whether the directory has a file of each extension that the lock names for this platform. Whether it is the right
// one is proved when the engine starts.
func HasExtensions(lock, dir string) bool {
	found, err := lockedExtensions(lock, platform())
	for _, x := range found {
		if _, missing := os.Stat(x.path(dir)); missing != nil {
			return false
		}
	}
	return err == nil
}

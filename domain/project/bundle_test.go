package project

import (
	"archive/tar"
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"leapview/domain/fail"
)

// Proves that a bundle is a function of its files alone, down to a digest fixed for ever, and that unpacking gives the files back.
func TestPackIsDeterministic(t *testing.T) {
	long := "models/" + strings.Repeat("a", 200) + ".sql"
	files := []File{file("models/b.sql", "SELECT 1"), file("leapview.yaml", "name: x\n"), file(long, "SELECT 2"), file("models/empty.sql", "")}
	b, err := Pack(files)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	again, err := Pack(files)
	if err != nil || !bytes.Equal(b, again) {
		t.Fatalf("other order, other bytes (%v)", err)
	}
	const want = "24a8293dbf7a8221a95844298bd4c59f41a80b9aa94a72d1a02a0fee782f48c4"
	if got := DigestOf(b); got != want {
		t.Errorf("the digest is %s, was %s: every release id would change", got, want)
	}
	got, err := Unpack(b)
	if err != nil {
		t.Fatal(err)
	}
	sorted := []File{file("leapview.yaml", "name: x\n"), file(long, "SELECT 2"), file("models/b.sql", "SELECT 1"), file("models/empty.sql", "")}
	if !reflect.DeepEqual(got, sorted) {
		t.Errorf("unpacked %q", got)
	}
	empty, err := Pack(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Unpack(empty); err != nil || len(got) != 0 {
		t.Errorf("the empty bundle gave %v, %v", got, err)
	}
}

// Proves that paths and sizes which mean trouble are refused, each under its own name.
func TestPackRefuses(t *testing.T) {
	many := make([]File, MaxFiles+1)
	for i := range many {
		many[i] = file(fmt.Sprintf("models/m%d.sql", i), "")
	}
	heavy := make([]File, MaxBundleBytes/MaxFileBytes+1)
	for i := range heavy {
		heavy[i] = File{fmt.Sprintf("models/m%d.sql", i), make([]byte, MaxFileBytes)}
	}
	cases := []struct {
		code  string
		kind  fail.Kind
		files []File
	}{
		{"bundle_too_many_files", fail.Limit, many},
		{"bundle_too_large", fail.Limit, heavy},
		{"bundle_file_too_large", fail.Limit, []File{{"a", make([]byte, MaxFileBytes+1)}}},
		{"bundle_path_too_long", fail.Limit, []File{file(strings.Repeat("a", MaxPathBytes+1), "")}},
		{"bundle_path_clash", fail.Invalid, []File{file("models/a.sql", ""), file("models/A.sql", "")}},
		{"bundle_path_clash", fail.Invalid, []File{file("a", ""), file("a", "")}},
	}
	for _, path := range []string{"", ".", "..", "../a", "a/../b", "/a", "a//b", "./a", "a/", `a\b`, "C:a", "a\x00b", "a\nb", "mödel", "a\xff", "a*"} {
		cases = append(cases, struct {
			code  string
			kind  fail.Kind
			files []File
		}{"bad_bundle_path", fail.Invalid, []File{file(path, "")}})
	}
	for _, c := range cases {
		_, err := Pack(c.files)
		if fail.CodeOf(err) != c.code || fail.KindOf(err) != c.kind {
			t.Errorf("%.40q: got %v (%s), want %s", c.files[0].Path, err, fail.CodeOf(err), c.code)
		}
	}
}

// Proves that an archive which Pack would write differently is refused, whatever it hides.
func TestUnpackRefuses(t *testing.T) {
	good, err := Pack([]File{file("a", "1"), file("b", "2")})
	if err != nil {
		t.Fatal(err)
	}
	archive := func(headers ...tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, h.Size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	plain := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Format: tar.FormatPAX}
	}
	with := func(h tar.Header, change func(*tar.Header)) tar.Header { change(&h); return h }
	if _, err := Unpack(archive(plain("a"))); err != nil {
		t.Fatalf("the archive that the others change is refused: %v", err)
	}
	for what, c := range map[string]struct {
		archive []byte
		code    string
	}{
		"nothing":         {nil, "bad_bundle"},
		"no archive":      {[]byte("hello"), "bad_bundle"},
		"cut short":       {good[:700], "bad_bundle"},
		"no end":          {good[:len(good)-1024], "bad_bundle"},
		"trailing zeros":  {append(slices.Clone(good), make([]byte, 512)...), "bad_bundle"},
		"trailing text":   {append(slices.Clone(good), "x"...), "bad_bundle"},
		"unsorted":        {archive(plain("b"), plain("a")), "bad_bundle"},
		"twice":           {archive(plain("a"), plain("a")), "bundle_path_clash"},
		"case clash":      {archive(plain("A"), plain("a")), "bundle_path_clash"},
		"escape":          {archive(plain("../a")), "bad_bundle_path"},
		"absolute":        {archive(plain("/a")), "bad_bundle_path"},
		"folder":          {archive(with(plain("a/"), func(h *tar.Header) { h.Typeflag = tar.TypeDir })), "bad_bundle"},
		"link":            {archive(with(plain("a"), func(h *tar.Header) { h.Typeflag, h.Linkname = tar.TypeSymlink, "/etc/passwd" })), "bad_bundle"},
		"hard link":       {archive(with(plain("a"), func(h *tar.Header) { h.Typeflag, h.Linkname = tar.TypeLink, "b" })), "bad_bundle"},
		"other mode":      {archive(with(plain("a"), func(h *tar.Header) { h.Mode = 0o755 })), "bad_bundle"},
		"time":            {archive(with(plain("a"), func(h *tar.Header) { h.ModTime = time.Unix(1, 0) })), "bad_bundle"},
		"owner":           {archive(with(plain("a"), func(h *tar.Header) { h.Uname = "root" })), "bad_bundle"},
		"extended record": {archive(with(plain("a"), func(h *tar.Header) { h.PAXRecords = map[string]string{"comment": "x"} })), "bad_bundle"},
		"large file":      {archive(with(plain("a"), func(h *tar.Header) { h.Size = MaxFileBytes + 1 })), "bundle_file_too_large"},
		"large archive":   {make([]byte, MaxArchiveBytes+1), "bundle_too_large"},
	} {
		if files, err := Unpack(c.archive); fail.CodeOf(err) != c.code {
			t.Errorf("%s: got %d files and %v, want %s", what, len(files), err, c.code)
		}
	}
}

// Proves that unpacking never panics, and that whatever it accepts packs to the very same bytes.
func FuzzUnpack(f *testing.F) {
	b, err := Pack(goodFiles)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1024])
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := Unpack(b)
		if err != nil {
			return
		}
		if again, err := Pack(files); err != nil || !bytes.Equal(again, b) {
			t.Errorf("accepted bytes that pack differently (%v)", err)
		}
	})
}

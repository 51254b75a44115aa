package lake

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// maxDerived bounds what is written beside one staged file, so that a small gzip file cannot fill the disk.
const maxDerived = int64(64) << 30

// derivers is how many files are written at once.
const derivers = 2

// derive writes a file beside the copy of each artifact that needs one, and gives the path to read for every artifact.
// write reads the artifact with this number, unpacked. drop removes what was written; it is to be called whatever the outcome, and what it cannot
// remove goes with the run's staging folder.
func derive(ctx context.Context, artifacts []ports.Artifact, needs func(ports.Artifact) bool,
	write func(i int, in io.Reader, out io.Writer) (project.Problems, error)) (paths []string, drop func(), problems project.Problems, err error) {
	paths = make([]string, len(artifacts))
	found := make([]project.Problems, len(artifacts))
	errs := make([]error, len(artifacts))
	turn := make(chan struct{}, derivers)
	var all sync.WaitGroup
	for i, a := range artifacts {
		if paths[i] = a.Path; !needs(a) {
			continue
		}
		paths[i] = a.Path + ".derived"
		turn <- struct{}{}
		all.Go(func() {
			found[i], errs[i] = deriveOne(ctx, a, paths[i], func(in io.Reader, out io.Writer) (project.Problems, error) { return write(i, in, out) })
			<-turn
		})
	}
	all.Wait()
	drop = func() {
		for i, a := range artifacts {
			if paths[i] != a.Path {
				_ = os.Remove(paths[i])
			}
		}
	}
	for _, p := range found {
		problems = append(problems, p...)
	}
	return paths, drop, problems, errors.Join(errs...)
}

func deriveOne(ctx context.Context, a ports.Artifact, path string, write func(io.Reader, io.Writer) (project.Problems, error)) (_ project.Problems, err error) {
	in, err := openArtifact(a)
	if err != nil {
		return asProblems(err)
	}
	defer in.Close()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fail.New(fail.Unavailable, "staging_failed", "no file can be written beside the staged copy of %s", a.Name).Because(err)
	}
	out := bufio.NewWriterSize(&bounded{w: f, left: maxDerived, artifact: a}, 1<<18)
	problems, err := write(patient{ctx, in}, out)
	if err == nil {
		err = out.Flush()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return asProblems(err)
	}
	return problems, nil
}

// asProblems takes the problems out of an error that is nothing else.
func asProblems(err error) (project.Problems, error) {
	var problems project.Problems
	if errors.As(err, &problems) {
		return problems, nil
	}
	return nil, err
}

// openArtifact reads a staged file, unpacked when its copy's name ends in .gz, which it does when its own name does. A gzip stream that is cut or damaged is a problem by its own
// checksum, which the engine does not look at.
func openArtifact(a ports.Artifact) (io.ReadCloser, error) {
	f, err := os.Open(a.Path)
	if err != nil {
		return nil, fail.New(fail.Internal, "staged_file_gone", "the staged copy of %s cannot be opened", a.Name).Because(err)
	}
	if !zipped(a) {
		return f, nil
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
	if err != nil {
		return nil, errors.Join(damaged(a, err), f.Close())
	}
	return &unzipping{z, f, a}, nil
}

func zipped(a ports.Artifact) bool { return strings.HasSuffix(a.Path, ".gz") }

// unzipping says of its file what is wrong with it.
type unzipping struct {
	z *gzip.Reader
	f *os.File
	a ports.Artifact
}

func (u *unzipping) Read(p []byte) (int, error) {
	n, err := u.z.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, damaged(u.a, err)
	}
	return n, err
}

func (u *unzipping) Close() error { return u.f.Close() }

// damaged is a problem of the file, unless the disk failed under it.
func damaged(a ports.Artifact, err error) error {
	var disk *os.PathError
	if errors.As(err, &disk) {
		return fail.New(fail.Unavailable, "staged_file_unreadable", "the staged copy of %s cannot be read", a.Name).Because(err)
	}
	return project.Problems{{At: project.Position{File: a.Name}, Message: fmt.Sprintf("the gzip file is damaged or cut short: %v", err), Fix: "deliver the file again"}}
}

// patient reads until the context ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, fail.New(fail.Canceled, "canceled", "staging was given up").Because(err)
	}
	return p.r.Read(b)
}

// bounded writes no more than it may.
type bounded struct {
	w        io.Writer
	left     int64
	artifact ports.Artifact
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, fail.New(fail.Limit, "unpacked_bytes", "%s unpacks to more than %d bytes (limit unpacked_bytes)", b.artifact.Name, maxDerived).WithFix("split the file")
	}
	n, err := b.w.Write(p)
	if errors.Is(err, syscall.ENOSPC) {
		return n, fail.New(fail.Limit, "disk_full", "the disk is full: %s cannot be unpacked", b.artifact.Name).Because(err).WithFix("free space on the disk that holds the data directory")
	}
	if err != nil {
		return n, fail.New(fail.Unavailable, "staging_failed", "%s cannot be unpacked", b.artifact.Name).Because(err)
	}
	return n, nil
}

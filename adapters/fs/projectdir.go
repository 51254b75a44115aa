package fs

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// projectFile names the project, and its presence is what makes a folder one.
const projectFile = "leapview.yaml"

// projectFolders are the folders of project files, with the ending that each file in them has. They are flat.
var projectFolders = []struct{ name, ending string }{{"endpoints", ".sql"}, {"models", ".sql"}, {"sources", ".yaml"}}

// ReadProject reads the project files in a folder: leapview.yaml, sources/*.yaml, models/*.sql and endpoints/*.sql, sorted by
// path. Whatever else lies beside them is the author's own business. In those three folders hidden files and *.md are left alone,
// and any other file, folder or link is a problem, because its author believes that it counts. Links are never followed.
func ReadProject(dir string) ([]project.File, error) {
	root, err := openRoot(dir)
	if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fail.New(fail.Missing, "project_missing", "%s is not a folder", dir).WithFix("name the folder that holds %s", projectFile).Because(err)
	}
	if err != nil {
		return nil, namedError(err, "open the project folder %s", dir)
	}
	defer root.Close()
	if _, err := root.Lstat(projectFile); errors.Is(err, iofs.ErrNotExist) {
		return nil, fail.New(fail.Missing, "not_a_project", "%s holds no %s, so it is not a project", dir, projectFile).
			WithFix("name the folder that holds it, or write one with at least name: my_project in it")
	}
	names := []string{projectFile}
	var problems project.Problems
	for _, folder := range projectFolders {
		found, wrong, err := listProjectFolder(root, folder.name, folder.ending, project.MaxFiles-len(names))
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
		problems = append(problems, wrong...)
	}
	sort.Strings(names)
	var files []project.File
	total := 0
	for _, name := range names {
		info, err := root.Lstat(filepath.FromSlash(name))
		if err != nil {
			return nil, namedError(err, "look at the project file %s", name)
		}
		if !info.Mode().IsRegular() {
			problems = append(problems, project.Problem{At: project.Position{File: name}, Message: "it is not a regular file; links are not followed", Fix: "replace it by the file itself"})
			continue
		}
		content, err := readProjectFile(root, name)
		if err != nil {
			return nil, err
		}
		if total += len(content); total > project.MaxBundleBytes {
			return nil, tooLarge("the project", int64(total))
		}
		files = append(files, project.File{Path: name, Content: content})
	}
	if len(problems) > 0 {
		sort.SliceStable(problems, func(i, j int) bool { return problems[i].At.File < problems[j].At.File })
		return nil, problems
	}
	return files, nil
}

// listProjectFolder lists the project files of one folder, at most max, and what is wrong there. A folder that is not there is
// empty.
func listProjectFolder(root *os.Root, folder, ending string, max int) (names []string, wrong project.Problems, err error) {
	report := func(name, message, fix string) {
		wrong = append(wrong, project.Problem{At: project.Position{File: name}, Message: message, Fix: fix})
	}
	info, err := root.Lstat(folder)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, namedError(err, "look at the project folder %s", folder)
	}
	if !info.IsDir() {
		report(folder, "it is not a folder; links are not followed", "make it a folder of *"+ending+" files")
		return nil, wrong, nil
	}
	d, err := root.Open(folder)
	if err != nil {
		return nil, nil, namedError(err, "open the project folder %s", folder)
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(256)
		if errors.Is(err, io.EOF) {
			return names, wrong, nil
		}
		if err != nil {
			return nil, nil, namedError(err, "list the project folder %s", folder)
		}
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			switch {
			case e.Name()[0] == '.':
			case e.IsDir():
				report(name, "folders inside "+folder+" are not read", "move its files to "+folder+" itself")
			case strings.HasSuffix(e.Name(), ending):
				names = append(names, name)
			case strings.HasSuffix(e.Name(), ".md"):
			default:
				report(name, "a file in "+folder+" ends in "+ending, "rename it, or move it out of "+folder)
			}
			if len(names)+len(wrong) > max {
				return nil, nil, fail.New(fail.Limit, "project_files", "the project has more than %d files, counted up to %s (limit project_files = %d)", project.MaxFiles, name, project.MaxFiles).
					WithFix("split it into several workspaces")
			}
		}
	}
}

// readProjectFile reads one file within its bound.
func readProjectFile(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(filepath.FromSlash(name), openToRead, 0)
	if err != nil {
		return nil, namedError(err, "open the project file %s", name)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, project.MaxFileBytes+1))
	if err != nil {
		return nil, namedError(err, "read the project file %s", name)
	}
	if len(content) > project.MaxFileBytes {
		return nil, fail.New(fail.Limit, "project_file_bytes", "the project file %s has more than %d bytes (limit project_file_bytes = %d)", name, project.MaxFileBytes, project.MaxFileBytes).
			WithFix("keep data out of the project's folder: sources are read from the source root")
	}
	return content, nil
}

package fs

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// projectFile names the project, and its presence is what makes a folder one.
const projectFile = "leapview.yaml"

// projectFolders are the folders of project files, with the ending that each file in them has. They are flat.
var projectFolders = []projectFolder{{"endpoints", ".sql"}, {"models", ".sql"}, {"sources", ".yaml"}, {"tests", ".yaml"}}

type projectFolder struct{ name, ending string }

// ReadProject reads the project files in a folder: leapview.yaml, sources/*.yaml, models/*.sql, endpoints/*.sql and tests/*.yaml,
// sorted by path. What its author believes to count and is not read is a problem: in those folders any other file, folder or link, and
// beside them whatever ends like a project file. Hidden files, README*, LICENSE*, what editors leave beside a file and, in those
// folders, *.md are left alone, and so is all data. Links are never followed.
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
		return nil, notAProject(root, dir)
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
	strays, err := strayFiles(root)
	if err != nil {
		return nil, err
	}
	for _, name := range strays {
		if problem, ok := project.Misplaced(name); !ok {
			problems = append(problems, problem)
		}
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
			return nil, project.ContentTooLarge()
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
			case aside(e.Name()):
			case e.IsDir():
				report(name, "folders inside "+folder+" are not read", "move its files to "+folder+" itself")
			case strings.HasSuffix(e.Name(), ending):
				names = append(names, name)
			case strings.HasSuffix(e.Name(), ".md"):
			default:
				// Only its ending is wrong, since the folder is right.
				problem, _ := project.Misplaced(name)
				wrong = append(wrong, problem)
			}
			if len(names)+len(wrong) > max {
				return nil, nil, fail.New(fail.Limit, "project_files", "the project has more than %d files, counted up to %s (limit project_files = %d)", project.MaxFiles, name, project.MaxFiles).
					WithFix("split it into several workspaces")
			}
		}
	}
}

// notAProject says that the folder holds no project, and which of its files may have been meant.
func notAProject(root *os.Root, dir string) error {
	fix := "name the folder that holds it, or write one with at least name: my_project in it"
	if d, err := root.Open("."); err == nil {
		defer d.Close()
		// A folder that cannot be listed has nothing to suggest.
		entries, _ := d.ReadDir(maxLooked)
		var near []string
		for _, e := range entries {
			if projectEnding(e.Name()) && !e.IsDir() {
				near = append(near, e.Name())
			}
		}
		sort.Strings(near)
		if s := project.Suggest(projectFile, near); s != "" {
			fix = s + " rename it to " + projectFile
		}
	}
	return fail.New(fail.Missing, "not_a_project", "%s holds no %s, so it is not a project", dir, projectFile).WithFix("%s", fix)
}

// aside tells whether a file or folder of this name is nobody's mistake, wherever it is. What editors and patches leave beside the files
// that they change is none.
func aside(name string) bool {
	return name[0] == '.' || strings.HasPrefix(name, "README") || strings.HasPrefix(name, "LICENSE") ||
		name[0] == '#' || strings.HasSuffix(name, "~") || slices.Contains(leftEndings, path.Ext(name))
}

// leftEndings are the endings of the copies that editors and patches leave.
var leftEndings = []string{".bak", ".orig", ".rej", ".swp", ".tmp"}

// projectEnding tells whether a file of this name looks like a project file. No format of source data ends so.
func projectEnding(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".sql", ".yaml", ".yml":
		return true
	}
	return false
}

// maxLooked is how many names beside the project's own folders are looked at: data may lie there, millions of files of it. maxStrays is how
// many mistakes among them are told at once.
const (
	maxLooked = 10_000
	maxStrays = 100
)

// strayFiles lists what looks like a project file and lies where none is read, in the outer folders first. Folders that are projects of
// their own are left out.
func strayFiles(root *os.Root) ([]string, error) {
	var strays []string
	left := maxLooked
	for folders := []string{"."}; len(folders) > 0 && left > 0 && len(strays) < maxStrays; folders = folders[1:] {
		entries, err := listed(root, folders[0], left)
		if err != nil {
			return nil, err
		}
		left -= len(entries)
		for _, e := range entries {
			name := path.Join(folders[0], e.Name())
			switch {
			case aside(e.Name()) || name == projectFile:
			case e.Type().IsRegular() && projectEnding(name):
				strays = append(strays, name)
			case e.IsDir() && !slices.ContainsFunc(projectFolders, func(f projectFolder) bool { return f.name == name }):
				if _, err := root.Lstat(path.Join(name, projectFile)); errors.Is(err, iofs.ErrNotExist) {
					folders = append(folders, name)
				}
			}
		}
	}
	return strays[:min(len(strays), maxStrays)], nil
}

// listed gives at most max names of a folder. One that may not be entered is empty: nothing in it is read, and it may be data.
func listed(root *os.Root, folder string, max int) ([]iofs.DirEntry, error) {
	d, err := root.Open(filepath.FromSlash(folder))
	if err != nil {
		return nil, nil
	}
	defer d.Close()
	entries, err := d.ReadDir(max)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, namedError(err, "list the folder %s", folder)
	}
	return entries, nil
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

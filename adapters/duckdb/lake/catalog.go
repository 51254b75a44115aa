package lake

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/fail"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// catalog answers what only the lake's metadata knows. A lake whose metadata lies elsewhere, in PostgreSQL say, has another one.
type catalog interface {
	// find gives the snapshot whose commit carries exactly this text.
	find(ctx context.Context, c *engine.Conn, mark string) (serving.Snapshot, time.Time, bool, error)
	// files are the paths, below the data directory, of all that the table needs at the snapshot.
	files(ctx context.Context, c *engine.Conn, schema, table string, snapshot int64) ([]string, error)
	// whole tells whether every file of the table's newest version is there with its size.
	whole(ctx context.Context, c *engine.Conn, schema, table string) (bool, error)
	// survey reads all snapshots and marks.
	survey(ctx context.Context, c *engine.Conn) (ports.LakeSurvey, error)
}

// fileCatalog is a catalog in a DuckDB file, attached beside the lake.
type fileCatalog struct{ dataDir string }

func (fileCatalog) find(ctx context.Context, c *engine.Conn, mark string) (serving.Snapshot, time.Time, bool, error) {
	// The newest commits are the likely ones, and comparing all texts costs more with each snapshot.
	for _, newest := range []bool{true, false} {
		from := engine.Metadata + ".ducklake_snapshot_changes"
		if newest {
			from = "(FROM " + from + " ORDER BY snapshot_id DESC LIMIT 8)"
		}
		var at int64
		var when time.Time
		err := c.Scan(ctx, "SELECT s.snapshot_id, s.snapshot_time FROM "+from+" x JOIN "+engine.Metadata+".ducklake_snapshot s USING (snapshot_id) WHERE x.commit_extra_info = ?",
			[]any{mark}, &at, &when)
		if err == nil {
			return serving.Snapshot(at), when.UTC(), true, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return 0, time.Time{}, false, err
		}
	}
	return 0, time.Time{}, false, nil
}

func (f fileCatalog) files(ctx context.Context, c *engine.Conn, schema, table string, snapshot int64) (_ []string, err error) {
	rows, err := c.Rows(ctx, "SELECT data_file, delete_file FROM ducklake_list_files("+literal(engine.Lake)+", "+literal(table)+", schema => "+literal(schema)+", snapshot_version => ?)", snapshot)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var files []string
	for rows.Next() {
		var data string
		var deletes sql.NullString
		if err := rows.Scan(&data, &deletes); err != nil {
			return nil, engine.Translate(err)
		}
		for _, path := range []string{data, deletes.String} {
			if path == "" {
				continue
			}
			relative, err := filepath.Rel(f.dataDir, path)
			if err != nil || strings.HasPrefix(relative, "..") {
				return nil, fail.New(fail.Corrupt, "file_outside_lake", "the catalog names the file %s, which is not below %s", path, f.dataDir)
			}
			files = append(files, filepath.ToSlash(relative))
		}
	}
	return files, engine.Translate(rows.Err())
}

func (fileCatalog) whole(ctx context.Context, c *engine.Conn, schema, table string) (_ bool, err error) {
	rows, err := c.Rows(ctx, "SELECT data_file, data_file_size_bytes FROM ducklake_list_files("+literal(engine.Lake)+", "+literal(table)+", schema => "+literal(schema)+")")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var path string
		var size int64
		if err := rows.Scan(&path, &size); err != nil {
			return false, engine.Translate(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != size {
			return false, nil
		}
	}
	return true, engine.Translate(rows.Err())
}

func (fileCatalog) survey(ctx context.Context, c *engine.Conn) (_ ports.LakeSurvey, err error) {
	survey := ports.LakeSurvey{Marks: map[serving.Snapshot]refresh.Mark{}}
	rows, err := c.Rows(ctx, "SELECT s.snapshot_id, coalesce(x.commit_extra_info, '') FROM "+engine.Metadata+".ducklake_snapshot s LEFT JOIN "+engine.Metadata+
		".ducklake_snapshot_changes x USING (snapshot_id) ORDER BY s.snapshot_id")
	if err != nil {
		return survey, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id int64
		var info string
		if err := rows.Scan(&id, &info); err != nil {
			return survey, engine.Translate(err)
		}
		survey.Snapshots = append(survey.Snapshots, serving.Snapshot(id))
		mark, ok := refresh.ParseMark(info)
		if !ok {
			continue
		}
		survey.Marks[serving.Snapshot(id)] = mark
		if mark.Kind == refresh.MarkInit {
			survey.Lineage = mark.Lineage
		}
		survey.HighestFence = max(survey.HighestFence, mark.Fence)
	}
	return survey, engine.Translate(rows.Err())
}

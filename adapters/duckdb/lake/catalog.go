package lake

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
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
	// files are all that the schema's tables need at the snapshot. A table without files is there too; a snapshot that is not there has
	// no tables.
	files(ctx context.Context, c *engine.Conn, schema string, at int64) (map[string][]dataFile, error)
	// survey reads all snapshots and marks.
	survey(ctx context.Context, c *engine.Conn) (ports.LakeSurvey, error)
}

// dataFile is a file of the lake: its path below the data directory, slash-separated, and the bytes that the catalog says it has.
type dataFile struct {
	path string
	size int64
}

// newest is the snapshot at which a catalog gives the newest version.
const newest = math.MaxInt64

// fileCatalog is a catalog in a DuckDB file, attached beside the lake.
type fileCatalog struct{ dataDir string }

func (fileCatalog) find(ctx context.Context, c *engine.Conn, mark string) (serving.Snapshot, time.Time, bool, error) {
	// The newest commits are the likely ones, and comparing all texts costs more with each snapshot.
	for _, few := range []bool{true, false} {
		from := engine.Metadata + ".ducklake_snapshot_changes"
		if few {
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

func (f fileCatalog) files(ctx context.Context, c *engine.Conn, schema string, at int64) (_ map[string][]dataFile, err error) {
	// The engine's own function over one table's files costs as much a table as this costs for all of them.
	during := func(x string) string {
		return fmt.Sprintf("%[1]s.begin_snapshot <= %[2]d AND (%[1]s.end_snapshot IS NULL OR %[1]s.end_snapshot > %[2]d)", x, at)
	}
	path := func(x string) string {
		return fmt.Sprintf("CASE WHEN NOT %[1]s.path_is_relative THEN %[1]s.path WHEN NOT t.path_is_relative THEN t.path || %[1]s.path WHEN NOT s.path_is_relative THEN s.path || t.path || %[1]s.path "+
			"ELSE %[2]s || s.path || t.path || %[1]s.path END", x, engine.Literal(f.dataDir+"/"))
	}
	rows, err := c.Rows(ctx, "SELECT t.table_name, coalesce("+path("d")+", ''), coalesce(d.file_size_bytes, 0), coalesce("+path("x")+", ''), coalesce(x.file_size_bytes, 0) FROM "+
		engine.Metadata+".ducklake_schema s JOIN "+engine.Metadata+".ducklake_table t ON t.schema_id = s.schema_id AND "+during("t")+
		" LEFT JOIN "+engine.Metadata+".ducklake_data_file d ON d.table_id = t.table_id AND "+during("d")+
		" LEFT JOIN "+engine.Metadata+".ducklake_delete_file x ON x.data_file_id = d.data_file_id AND "+during("x")+
		" WHERE s.schema_name = ? AND "+during("s")+fmt.Sprintf(" AND (%[1]d = %[2]d OR EXISTS (FROM %[3]s.ducklake_snapshot WHERE snapshot_id = %[1]d))", at, int64(newest), engine.Metadata), schema)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	files := map[string][]dataFile{}
	for rows.Next() {
		var table string
		var data, deletes dataFile
		if err := rows.Scan(&table, &data.path, &data.size, &deletes.path, &deletes.size); err != nil {
			return nil, err
		}
		some := files[table]
		for _, x := range []dataFile{data, deletes} {
			if x.path == "" {
				continue
			}
			relative, err := filepath.Rel(f.dataDir, x.path)
			if err != nil || !filepath.IsLocal(relative) {
				return nil, fail.New(fail.Corrupt, "file_outside_lake", "the catalog names the file %s, which is not below %s", x.path, f.dataDir)
			}
			some = append(some, dataFile{filepath.ToSlash(relative), x.size})
		}
		files[table] = some
	}
	return files, rows.Err()
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
			return survey, err
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
	return survey, rows.Err()
}

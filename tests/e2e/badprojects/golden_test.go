// Package badprojects owns what authors read when their project files are wrong.
//
// Invariant: each wrong project's whole report is a golden file, so that a change of any message is seen. The package does not
// know how the problems are found, and compiles no SQL.
package badprojects

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leapview/adapters/fs"
	"leapview/adapters/yaml"
	"leapview/domain/project"
)

var update = flag.Bool("update", false, "rewrite the golden files from what is reported now")

// replaced says what a wrong project has instead of the right one's files; an empty text leaves a file out.
type replaced map[string]string

// right is a project without a mistake; each case changes some of it.
var right = replaced{
	"leapview.yaml":        "name: shop\n",
	"sources/orders.yaml":  "connector: file\nlocation: orders/*.csv\nformat: csv\nnull_texts: [NA]\ncolumns:\n  id: BIGINT\n  region: VARCHAR\n  amount: {type: \"DECIMAL(18,2)\", description: In euro}\n",
	"models/sales.sql":     "/*---\nlayer: mart\nchecks:\n  - not_null: id\n  - row_count: {min: 1}\n---*/\nSELECT * FROM orders\n",
	"endpoints/region.sql": "/*---\nlimit: 10\nparams:\n  region: {type: string, required: true}\n---*/\nSELECT * FROM sales WHERE region = $region\n",
}

func source(body string) replaced {
	return replaced{"sources/orders.yaml": body}
}

func model(head string) replaced {
	return replaced{"models/sales.sql": "/*---\n" + head + "\n---*/\nSELECT * FROM orders\n"}
}

func params(body string) replaced {
	return replaced{"endpoints/region.sql": "/*---\nparams:\n" + body + "\n---*/\nSELECT * FROM sales\n"}
}

func endpoint(head string) replaced {
	return replaced{"endpoints/region.sql": "/*---\n" + head + "\n---*/\nSELECT * FROM sales\n"}
}

const columns = "columns: {id: BIGINT}\n"

func tests(body string) replaced { return replaced{"tests/sales.yaml": body} }

// examples are calls with one mistake each, of an endpoint that has some of everything.
const examples = `limit: 10
params:
  region: {type: string, required: true, enum: [north, south]}
  days: {type: date, list: true, max_items: 2}
order_by: {allow: [region, amount]}
columns: {allow: [region, amount]}
examples:
  - {name: right, params: {region: north, days: ["2024-01-01"]}, order_by: [-amount, region], columns: [amount], limit: 5}
  - {params: {region: north}}
  - {name: Bad, params: {region: north}}
  - {name: right, params: {region: north}}
  - {name: missing}
  - {name: unknown, params: {regoin: north, region: north}}
  - {name: wrong, params: {region: east}}
  - {name: items, params: {region: north, days: ["2024-01-01", "2024-13-01"]}}
  - {name: too_many, params: {region: north, days: ["2024-01-01", "2024-01-02", "2024-01-03"]}}
  - {name: no_list, params: {region: [north], days: "2024-01-01"}}
  - {name: order, params: {region: north}, order_by: [amuont]}
  - {name: picked, params: {region: north}, columns: [amount, amount]}
  - {name: limit, params: {region: north}, limit: 11}
  - {name: key, param: {region: north}}
  - {name: list, params: [north]}
  - text`

var cases = map[string]replaced{
	"test_without_subject":     tests("cases: []\n"),
	"test_two_subjects":        tests("model: sales\nendpoint: region\ncases: []\n"),
	"test_unknown_subject":     tests("model: sale\ncases: [{name: a, given: {}, expect: []}]\n"),
	"test_unknown_key":         tests("model: sales\ncases:\n  - {name: a, givn: {}, given: {}, expect: [], params: {}}\n"),
	"test_rows":                tests("model: sales\ncases:\n  - name: a\n    given: {orders: {id: 1}, orders: [1]}\n    expect:\n      - {id: 1, ID: 2}\n"),
	"test_names":               tests("model: sales\ncases:\n  - {name: a, given: {}, expect: []}\n  - {name: a, given: {}, expect: []}\n  - {name: \"\", given: [], expect: []}\n"),
	"test_call":                tests("endpoint: region\ncases:\n  - {name: a, given: {}, expect: [], params: {region: {x: 1}, days: [1, [2], null]}, order_by: region, columns: [5], limit: many}\n"),
	"root_missing":             {"leapview.yaml": ""},
	"root_empty":               {"leapview.yaml": "# nothing yet\n"},
	"root_other_name":          {"leapview.yaml": "", "leapview.yml": "name: shop\n"},
	"root_bad_name":            {"leapview.yaml": "name: My Shop\n"},
	"root_name_is_number":      {"leapview.yaml": "name: 2024\n"},
	"root_unknown_key":         {"leapview.yaml": "name: shop\ndescripton: x\n"},
	"root_coming_key":          {"leapview.yaml": "name: shop\nschedules: {}\n"},
	"root_duplicate_key":       {"leapview.yaml": "name: shop\ndescription: x\nname: shop\n"},
	"root_is_list":             {"leapview.yaml": "- name: shop\n"},
	"root_not_yaml":            {"leapview.yaml": "name: [shop\n"},
	"root_two_documents":       {"leapview.yaml": "name: shop\n---\nname: shop\n"},
	"no_models":                {"models/sales.sql": "", "endpoints/region.sql": ""},
	"file_without_place":       {"readme.txt": "hello\n"},
	"folder_misspelt":          {"model/sales.sql": "SELECT 1\n"},
	"file_with_wrong_ending":   {"sources/orders.yml": "format: csv\n"},
	"file_with_bad_name":       {"models/Sales-2024.sql": "SELECT 1\n"},
	"file_in_inner_folder":     {"models/eu/sales.sql": "SELECT 1\n"},
	"not_utf8":                 {"models/sales.sql": "SELECT 1,\n  'caf\xe9'\n"},
	"nul":                      {"models/sales.sql": "SELECT\n\x001\n"},
	"byte_order_mark":          {"models/sales.sql": "\ufeffSELECT 1\n"},
	"source_and_model_clash":   {"models/orders.sql": "SELECT 1 AS id\n"},
	"source_empty":             source("# later\n"),
	"source_unknown_key":       source("location: a.csv\nformatt: csv\nformat: csv\n" + columns),
	"source_on_change":         source("location: a.csv\nformat: csv\non_change: add\n" + columns),
	"source_on_change_other":   source("location: a.csv\nformat: csv\non_change: ignroe\n" + columns),
	"source_coming_excel":      source("connector: excel\nlocation: a.xlsx\nformat: xlsx\n" + columns),
	"source_marks":             source("location: a.csv\nformat: csv\ndelimiter: \";\"\nquote: \";\"\nescape: ab\ncomment: \"'\"\n" + columns),
	"source_marks_taken":       source("location: a.csv\nformat: csv\nquote: \"'\"\nescape: \"x\"\ncomment: \"'\"\nnull_texts: [\"it's\"]\n" + columns),
	"source_quote_none":        source("location: a.csv\nformat: csv\nquote: none\nescape: \"\\\\\"\n" + columns),
	"source_quote_delimiter":   source("location: a.csv\nformat: csv\ndelimiter: '\"'\n" + columns),
	"source_reading":           source("location: a.csv\nformat: csv\nheader: \"no\"\nencoding: utf8\nskip_lines: -1\nragged: fill\n" + columns),
	"source_headless":          source("location: a.csv\nformat: csv\nheader: false\non_change: ignore\ncolumns:\n  id: {type: BIGINT, from: ID}\n"),
	"source_separators":        source("location: a.csv\nformat: csv\ndecimal: \";\"\nthousands: \".\"\n" + columns),
	"source_separators_same":   source("location: a.csv\nformat: csv\ndecimal: \",\"\nthousands: \",\"\n" + columns),
	"source_time_formats":      source("location: a.csv\nformat: csv\ndate_format: \"%d/%m\"\ntimestamp_format: \"%d/%m/%Y %H:%M %p\"\ncolumns:\n  day: {type: DATE, format: \"%-d.%m.%Y\"}\n  at: {type: TIMESTAMP, format: \"%d/%m/%Y\"}\n  id: {type: BIGINT, format: \"%Y\"}\n  old: {type: DATE, format: \"%Y-%m-%d %z\"}\n"),
	"source_time_format_types": source("location: a.csv\nformat: csv\ntimestamp_format: \"%d/%m/%Y %H:%M\"\ncolumns:\n  at: TIMESTAMP\n  sent: TIMESTAMPTZ\n"),
	"source_dialect_json":      source("location: a.json\nformat: ndjson\nheader: false\nencoding: latin-1\ntypes: exact\ncolumns:\n  day: {type: DATE, format: \"%Y%m%d\"}\n"),
	"source_types_policy":      source("location: a.parquet\nformat: parquet\ntypes: strict\n" + columns),
	"source_from":              source("location: a.csv\nformat: csv\ncolumns:\n  id: {type: BIGINT, from: \"\"}\n  a: {type: BIGINT, from: x}\n  b: {type: BIGINT, from: x}\n  c: BIGINT\n  d: {type: BIGINT, from: c}\n"),
	"source_bounds":            source("location: a.csv\nformat: csv\nbounds: {max_files: 0, max_bytes: 5GB, max_rows: 5, min_rows: 9, max_shrink_percent: 100, freshness: 36 hours, max_age: 1d}\n" + columns),
	"source_bounds_empty":      source("location: a.csv\nformat: csv\nbounds: {}\n" + columns),
	"model_column_from":        model("columns:\n  id: {type: BIGINT, from: ID}"),
	"source_coming_connector":  source("connector: postgres\nlocation: a.csv\nformat: csv\n" + columns),
	"source_unknown_connector": source("connector: flie\nlocation: a.csv\nformat: csv\n" + columns),
	"source_unknown_format":    source("location: a.csv\nformat: parket\n" + columns),
	"source_location_up":       source("location: ../secrets/*.csv\nformat: csv\n" + columns),
	"source_location_absolute": source("location: /etc/passwd\nformat: csv\n" + columns),
	"source_location_url":      source("location: https://example.org/a.csv\nformat: csv\n" + columns),
	"source_location_windows":  source("location: data\\a.csv\nformat: csv\n" + columns),
	"source_location_pattern":  source("location: \"data/[a.csv\"\nformat: csv\n" + columns),
	"source_location_unclean":  source("location: data//./a.csv\nformat: csv\n" + columns),
	"source_delimiter_long":    source("location: a.csv\nformat: csv\ndelimiter: \"||\"\n" + columns),
	"source_delimiter_parquet": source("location: a.parquet\nformat: parquet\ndelimiter: \";\"\nnull_texts: [NA]\n" + columns),
	"source_null_texts":        source("location: a.csv\nformat: csv\nnull_texts: [NA, 0, NA, \"a,b\", \"\\\"\"]\n" + columns),
	"source_no_columns":        source("location: a.csv\nformat: csv\ncolumns: {}\n"),
	"source_columns_list":      source("location: a.csv\nformat: csv\ncolumns:\n  - id\n"),
	"source_columns_twice":     source("location: a.csv\nformat: csv\ncolumns:\n  id: BIGINT\n  Id: BIGINT\n"),
	"source_column_empty":      source("location: a.csv\nformat: csv\ncolumns:\n  \"\": BIGINT\n  \"a\\tb\": BIGINT\n"),
	"source_column_number":     source("location: a.csv\nformat: csv\ncolumns:\n  2024: BIGINT\n"),
	"source_types_lossy":       source("location: a.csv\nformat: csv\ncolumns:\n  a: HUGEINT\n  f: REAL\n  b: INTERVAL\n  c: TIMETZ\n  d: INTEGER[3]\n  e: ENUM('x')\n"),
	"source_types_unknown":     source("location: a.csv\nformat: csv\ncolumns:\n  a: INTEGR\n  b: DECIMAL(50,2)\n  c: VARCHAR(10)\n  d: {typ: INT}\n  e: 5\n"),
	"sql_empty":                {"models/sales.sql": "/*---\nlayer: mart\n---*/\n\n"},
	"sql_only_semicolon":       {"models/sales.sql": ";\n"},
	"sql_too_long":             {"models/sales.sql": "SELECT '" + strings.Repeat("x", project.MaxSQLBytes) + "'\n"},
	"comment_unterminated":     {"models/sales.sql": "/*---\nlayer: mart\nSELECT 1\n"},
	"comment_ends_early":       {"models/sales.sql": "/*---\nlayer: mart\n*/\nSELECT 1\n"},
	"comment_on_one_line":      {"models/sales.sql": "/*--- layer: mart ---*/\nSELECT 1\n"},
	"comment_misspelt":         {"models/sales.sql": "/* ---\nlayer: mart\n--- */\nSELECT 1\n"},
	"comment_not_first":        {"models/sales.sql": "-- sales\n/*---\nlayer: mart\n---*/\nSELECT 1\n"},
	"comment_not_yaml":         model("layer: [mart"),
	"comment_is_text":          model("just words"),
	"model_unknown_key":        model("layr: mart"),
	"model_keys_of_modes":      model("partition_by: day\nkey: id\ninput: sales\ndeleted_when: true"),
	"model_mode_without_key":   model("mode: upsert\npartition_by: region"),
	"model_mode_bad_key":       model("mode: replace_partitions\npartition_by: [id, id]\nkey: 5"),
	"model_unknown_layer":      model("layer: gold"),
	"model_coming_mode":        model("materialize: view\nmode: incremental"),
	"model_description_number": model("description: 5"),
	"model_cast_lossy":         model("columns:\n  total: HUGEINT\n  parts: INTERVAL[]\n  point: STRUCT(INT, INT)"),
	"check_unknown":            model("checks:\n  - not_nul: id"),
	"check_accepted_values":    model("checks:\n  - accepted_values: {region: [a]}\n  - accepted_values: {column: region, values: []}\n  - accepted_values: {column: region, values: [a, a, [b], null]}\n  - accepted_values: [a]"),
	"check_range":              model("checks:\n  - range: {column: id}\n  - range: {min: 1}\n  - range: {column: id, least: 1, min: [1]}"),
	"check_relationships":      model("checks:\n  - relationships: {column: id}\n  - relationships: {column: id, columns: [id], to: x, field: y}\n  - relationships: {columns: [id, region], to: x, fields: [y]}"),
	"check_freshness":          model("checks:\n  - freshness: {column: id, max_age: 36}\n  - freshness: {column: id, max_age: 36 hours}\n  - freshness: {column: id, max_age: 0h}\n  - freshness: {max_age: 1d}\n    max_failures: 1"),
	"check_sql":                model("checks:\n  - expression: \"\"\n  - sql: 5\n  - sql: SELECT 1\n    where: id > 1"),
	"check_options":            model("checks:\n  - not_null: id\n    severity: warning\n    max_failures: -1\n    max_failure_percent: 101\n    wher: id > 1\n  - severity: warn\n  - row_count: {min: 1}\n    max_failures: 2\n    max_failure_percent: 1"),
	"check_texts":              model("checks:\n  - not_null: id\n    name: \"a\\nb\"\n    max_failure_percent: 1e-9\n  - range: {column: id, min: " + strings.Repeat("9", 256) + "}\n  - expression: |\n      ;"),
	"check_two_keys":           model("checks:\n  - not_null: id\n    unique: id"),
	"check_is_text":            model("checks:\n  - not_null\n  - unique: 5\n  - not_null: []\n  - unique: [id, ID]"),
	"check_not_list":           model("checks: {not_null: id}"),
	"check_twice":              model("checks:\n  - unique: id\n  - unique: [id]"),
	"check_row_count":          model("checks:\n  - row_count: {}\n  - row_count: 5\n  - row_count: {min: 9, max: 1}\n  - row_count: {min: -1}\n  - row_count: {min: 1.5}\n  - row_count: {least: 1}"),
	"endpoint_unknown_key":     {"endpoints/region.sql": "/*---\nlimits: 10\n---*/\nSELECT 1\n"},
	"endpoint_limit":           {"endpoints/region.sql": "/*---\nlimit: 100001\n---*/\nSELECT 1\n", "endpoints/zero.sql": "/*---\nlimit: 0\n---*/\nSELECT 1\n", "endpoints/text.sql": "/*---\nlimit: \"5\"\n---*/\nSELECT 1\n"},
	"params_list":              params("  - region"),
	"param_without_type":       params("  region: {}\n  other: string"),
	"param_bad_name":           params("  Region: {type: string}"),
	"param_twice":              params("  region: {type: string}\n  region: {type: string}"),
	"param_unknown_type":       params("  region: {type: text}\n  day: {type: dat}"),
	"param_defaults":           params("  a: {type: integer, default: 1.5}\n  b: {type: date, default: \"2013-02-30\"}\n  c: {type: boolean, default: \"yes\"}\n  d: {type: string, default: 5}\n  e: {type: integer, default: null}\n  f: {type: decimal, default: 0.0000000001}\n  g: {type: timestamp, default: \"2013-01-01T00:00:00Z\"}"),
	"param_required_default":   params("  region: {type: string, required: true, default: x}\n  other: {type: string, required: 1}"),
	"param_enum":               params("  a: {type: string, enum: []}\n  b: {type: string, enum: [x, x]}\n  c: {type: string, enum: [x, 1]}\n  d: {type: string, enum: [x, y], default: z}\n  e: {type: integer, max: 5, enum: [4, 9]}\n  f: {type: string, enum: x}"),
	"param_bounds":             params("  a: {type: integer, min: 9, max: 1}\n  b: {type: string, min: a}\n  c: {type: integer, max: 5, default: 6}\n  d: {type: date, min: \"2013-12-31\", default: \"2013-01-01\"}"),
	"param_other_types":        params("  a: {type: int, default: x}\n  b: {type: bool, min: 1}\n  c: {type: enum, values: [a]}\n  d: {type: list}\n  e: {type: list of integer}\n  f: {type: \"date[]\"}"),
	"param_lists":              params("  a: {type: string, list: true, max_items: 0}\n  b: {type: string, max_items: 5}\n  c: {type: integer, list: true, max_items: 2, default: [1, 2, 3]}\n  d: {type: date, list: true, default: \"2013-01-01\"}\n  e: {type: integer, list: true, max: 5, default: [1, 9, x, null]}\n  f: {type: string, list: 1}\n  g: {type: string, list: true, enum: [a, b], default: [a, c]}"),
	"param_lengths":            params("  a: {type: integer, max_length: 5}\n  b: {type: string, min_length: 5, max_length: 2}\n  c: {type: string, max_length: 5000}\n  d: {type: string, min_length: -1}\n  e: {type: string, max_length: 2, default: abc}\n  f: {type: string, min_length: 2, enum: [ab, a]}\n  g: {type: string, max: z}"),
	"param_patterns":           params("  a: {type: date, pattern: x}\n  b: {type: string, pattern: \"[a-z\"}\n  c: {type: string, pattern: \"a)|(b\"}\n  d: {type: string, pattern: \"[A-Z]{2}\", default: UAX}\n  e: {type: string, pattern: \"[A-Z]{2}\", enum: [UA, ua]}\n  f: {type: string, pattern: 5}\n  g: {type: string, pattern: \"(?=x)\"}"),
	"param_reserved":           params("  order_by: {type: string}\n  columns: {type: string}\n  limit: {type: integer}"),
	"order_by":                 endpoint("order_by: {allow: [region, -amount, region, \"a,b\", 5], default: [-amont, region], ties: []}"),
	"order_by_default_only":    endpoint("order_by: {default: [region]}"),
	"order_by_list":            endpoint("order_by: [region]"),
	"columns":                  endpoint("columns: {allow: [region, region], descriptions: {region: 5, id: a}}"),
	"columns_of_a_model":       endpoint("columns: {region: VARCHAR}"),
	"columns_pick":             endpoint("columns: pick"),
	"examples":                 endpoint(examples),
	"examples_mapping":         endpoint("examples: {a: 1}"),
	"several_files":            {"leapview.yaml": "nam: shop\n", "sources/orders.yaml": "format: csv\n", "models/sales.sql": "/*---\nlayer: gold\n---*/\n", "endpoints/region.sql": "/*---\nlimit: many\n---*/\nSELECT 1\n"},
}

// Proves that every kind of mistake is refused, and fixes what its author reads: place, reason, what to write, line and caret.
func TestReports(t *testing.T) {
	if _, err := project.Decode(files(nil), yaml.Documents{}); err != nil {
		t.Fatalf("the project that the cases change is wrong itself: %v", err)
	}
	for name, changes := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := project.Decode(files(changes), yaml.Documents{})
			var problems project.Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("got %v, want problems", err)
			}
			for _, p := range problems {
				if p.At.File == "" || p.At.Line > 0 && p.At.Column == 0 || p.Message == "" {
					t.Errorf("problem without a place or message: %+v", p)
				}
			}
			golden(t, name, problems)
		})
	}
}

// inFolders are mistakes that only whoever reads the project's folder can see: no such file is in a bundle.
var inFolders = map[string]replaced{
	"folder_of_another_name":   {"model/sales.sql": "SELECT 1\n", "model/.sales.sql.swp": "", "endpoint/README": "x"},
	"folder_in_capitals":       {"Sources/orders.yaml": "format: csv\n", "Models/Sales.SQL": "SELECT 1\n"},
	"folder_inside":            {"analytics/models/sales.sql": "SELECT 1\n", "models/eu/sales.sql": "SELECT 1\n"},
	"folder_with_other_files":  {"models/sales.txt": "x\n", "models/sales.sq": "x\n", "models/sales.sql~": "x\n", "sources/orders.yml": "x\n", "endpoints/Region.SQL": "x\n", "sources/LICENSE.txt": "x", "models/notes.md": "x"},
	"folder_beside_the_others": {"orders.yaml": "format: csv\n", "sales.sql": "SELECT 1\n", "leapview.yml": "name: shop\n", "metrics/sales.yaml": "x: 1\n"},
}

// Proves that a project file which nobody would read is reported with its path and what was probably meant, while READMEs, licenses,
// hidden files, data, and projects inside the folder are left alone.
func TestFolderReports(t *testing.T) {
	data := replaced{"README.yaml": "x", "LICENSE": "x", ".github/ci.yaml": "x", "data/orders.csv": "x", "data/2024/orders.json": "x", "orders/a.parquet": "x",
		"notes.txt": "x", "dashboard.json": "{}", "examples/other/leapview.yaml": "name: other\n", "examples/other/models/m.sql": "SELECT 1\n"}
	write := func(t *testing.T, dir string, sets ...replaced) {
		t.Helper()
		for _, set := range sets {
			for path, content := range set {
				path = filepath.Join(dir, filepath.FromSlash(path))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	dir := t.TempDir()
	write(t, dir, right, data)
	if files, err := fs.ReadProject(dir); err != nil || len(files) != len(right) {
		t.Fatalf("the project that the cases change: %d files, %v", len(files), err)
	}
	for name, changes := range inFolders {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, right, data, changes)
			_, err := fs.ReadProject(dir)
			var problems project.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want problems", err)
			}
			golden(t, name, problems)
		})
	}
}

// golden compares a report with the file that holds it.
func golden(t *testing.T, name string, problems project.Problems) {
	t.Helper()
	got := problems.Error() + "\n"
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update and read what it writes", err)
	}
	if got != string(want) {
		t.Errorf("reported\n%s\nthe golden file says\n%s", got, want)
	}
}

// Proves that every golden file belongs to a case.
func TestNoGoldenFileIsLeftOver(t *testing.T) {
	found, err := filepath.Glob(filepath.Join("testdata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		name := strings.TrimSuffix(filepath.Base(path), ".golden")
		if cases[name] == nil && inFolders[name] == nil {
			t.Errorf("%s belongs to no case", path)
		}
	}
}

// Proves that the example project has no problem, and that each query of its dashboard names an endpoint and parameters that fit.
func TestExampleDecodes(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "examples", "flights")
	read, err := fs.ReadProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := project.Decode(read, yaml.Documents{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "flights" || len(p.Sources) != 5 || len(p.Models) != 13 || len(p.Endpoints) != 10 {
		t.Errorf("%s has %d sources, %d models and %d endpoints", p.Name, len(p.Sources), len(p.Models), len(p.Endpoints))
	}
	text, err := os.ReadFile(filepath.Join(dir, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	asked := dashboard(t, text)
	for _, e := range p.Endpoints {
		call, ok := asked[e.Name]
		if !ok {
			t.Errorf("the dashboard does not ask %s", e.Name)
		}
		var found project.CallError
		if e.Bind(call, "", &found); found.Found() != nil {
			t.Error(found.Error())
		}
		delete(asked, e.Name)
	}
	for name := range asked {
		t.Errorf("the dashboard asks %s, which is no endpoint", name)
	}
}

// files is the right project with changes.
func files(changes replaced) []project.File {
	var out []project.File
	for path, content := range right {
		if _, changed := changes[path]; !changed {
			out = append(out, project.File{Path: path, Content: []byte(content)})
		}
	}
	for path, content := range changes {
		if content != "" {
			out = append(out, project.File{Path: path, Content: []byte(content)})
		}
	}
	return out
}

package project

import (
	"maps"
	"math"
)

// SchemaKinds lists the kinds of project files that have a schema: of models and endpoints it is the YAML in their leading comment.
func SchemaKinds() []string { return []string{"project", "source", "model", "endpoint", "test"} }

// Schema is the JSON Schema (2020-12) of a kind of project file, so that editors complete and check it. It says what can be written; what
// takes more than one value to judge only the decoder knows. ok is false for an unknown kind.
func Schema(kind string) (schema map[string]any, ok bool) {
	switch kind {
	case "project":
		schema = object("leapview.yaml: names the project, which is a workspace.", []string{"name"}, properties{
			"name":        pattern(nameForm.String(), "The workspace's name, and its schema in the lake."),
			"description": words("For people."),
		})
	case "source":
		schema = sourceSchema()
	case "model":
		schema = modelSchema()
	case "endpoint":
		schema = endpointSchema()
	case "test":
		schema = testSchema()
	default:
		return nil, false
	}
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "LeapView " + kind
	return schema, true
}

type properties map[string]map[string]any

// object is a mapping that has these keys and no others.
func object(description string, required []string, p properties) map[string]any {
	s := map[string]any{"type": "object", "description": description, "additionalProperties": false, "properties": p}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func words(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

func pattern(form, description string) map[string]any {
	return map[string]any{"type": "string", "pattern": form, "description": description}
}

func oneOf(description string, words ...string) map[string]any {
	return map[string]any{"type": "string", "enum": words, "description": description}
}

func whole(description string, least, most int64) map[string]any {
	return map[string]any{"type": "integer", "minimum": least, "maximum": most, "description": description}
}

func truth(description string) map[string]any {
	return map[string]any{"type": "boolean", "description": description}
}

func listOf(item map[string]any, description string) map[string]any {
	return map[string]any{"type": "array", "items": item, "description": description}
}

// mapOf is a mapping whose keys are names.
func mapOf(value map[string]any, description string) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": value, "description": description}
}

func either(description string, schemas ...map[string]any) map[string]any {
	return map[string]any{"anyOf": schemas, "description": description}
}

// anyScalar is a value as YAML writes it.
func anyScalar(description string) map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean"}, "description": description}
}

// columnSchema is a column with its type; more are the further keys of its object.
func columnSchema(more properties) map[string]any {
	p := properties{
		"type":        words("The engine's type, such as BIGINT or DECIMAL(18,2)."),
		"description": words("For people."),
	}
	maps.Copy(p, more)
	return either("The engine's type, such as BIGINT or DECIMAL(18,2).", words("The type."), object("A column.", []string{"type"}, p))
}

func sourceSchema() map[string]any {
	mark := func(description string) map[string]any {
		return map[string]any{"type": "string", "minLength": 1, "maxLength": 1, "description": description}
	}
	return object("sources/NAME.yaml: files, read exactly as they are declared here.", []string{"location", "format", "columns"}, properties{
		"connector":        oneOf("How files are reached.", "file"),
		"description":      words("For people."),
		"location":         words("A path or pattern below the source root, such as data/orders-*.csv.gz."),
		"format":           oneOf("How the files are written; text formats may be gzipped.", string(CSV), string(Parquet), string(JSON), string(NDJSON)),
		"delimiter":        mark("What separates the fields of CSV; a comma unless it is said."),
		"null_texts":       listOf(words(""), "Bare CSV fields that mean that there is no value, besides the empty one."),
		"quote":            either("What encloses fields of CSV; the double quote unless it is said.", mark(""), oneOf("", QuoteNone)),
		"escape":           mark("What stands before a quote within a quoted CSV field; such a quote is doubled unless it is said."),
		"header":           truth("Whether CSV files name their columns; without a header they are the declared ones in their order."),
		"encoding":         oneOf("How the characters of CSV files are written.", string(UTF8), string(UTF16), string(Latin1), string(Windows1252)),
		"skip_lines":       whole("How many lines of a CSV file stand before its header.", 0, MaxSkipLines),
		"comment":          mark("What begins lines of CSV files that are no records."),
		"decimal":          oneOf("What stands before the fraction of a number in CSV.", decimals...),
		"thousands":        oneOf("What stands between groups of three digits in CSV.", thousands...),
		"date_format":      words("How CSV files write a DATE, in strptime's letters, such as %d/%m/%Y."),
		"timestamp_format": words("How CSV files write a TIMESTAMP, in strptime's letters, such as %d/%m/%Y %H:%M; with %z, how they write a TIMESTAMP WITH TIME ZONE."),
		"ragged":           oneOf("What becomes of a CSV record with fewer fields than columns: an error, or NULL for those that it lacks.", raggeds...),
		"types":            oneOf("Which types of Parquet columns are accepted: those whose values the declared type holds, or the declared one alone.", string(TypesWiden), string(TypesExact)),
		"on_change":        oneOf("What becomes of columns that are not declared: the refresh fails, or goes on without them.", string(ChangeFail), string(ChangeIgnore)),
		"bounds": object("What the source may bring in; a refresh with less, more or older files fails.", nil, properties{
			"max_files": whole("The most files.", 1, math.MaxInt64), "max_bytes": whole("The most bytes of all files together, as they are stored.", 1, math.MaxInt64),
			"max_rows": whole("The most rows.", 1, math.MaxInt64), "min_rows": whole("The fewest rows.", 1, math.MaxInt64),
			"max_shrink_percent": whole("How many of a hundred rows may be gone since the active snapshot.", 0, 99),
			"freshness":          pattern(`^[1-9][0-9]*[smhdw]$`, "How long ago the newest file may have been written, such as 36h."),
		}),
		"columns": mapOf(columnSchema(properties{
			"from":   words("What the files call the column, when that is another name."),
			"format": words("How CSV files write the column's days and times, in strptime's letters, such as %d/%m/%Y."),
		}), "Every column of the files, with its type."),
	})
}

func modelSchema() map[string]any {
	return object("The head of models/NAME.sql: a table, built by the SELECT below it.", nil, properties{
		"description":  words("For people."),
		"layer":        oneOf("A label.", string(Raw), string(Staging), string(Mart)),
		"materialize":  oneOf("What the model becomes.", "table"),
		"mode":         oneOf("What becomes of the table when new files of its input come in: it is built anew, or what the statement gives of each new file is appended, put in the place of the rows with the same key, or of the same partitions.", string(ModeFull), string(ModeAppend), string(ModeUpsert), string(ModeReplace)),
		"input":        words("The source whose files fill the table one by one; needed when the statement reads more than one source."),
		"key":          either("The columns that identify a row, for mode upsert.", words(""), listOf(words(""), "")),
		"deleted_when": words("SQL over one row that the statement gives, for mode upsert: where it is true the row with that key goes."),
		"partition_by": either("The columns whose values make up a partition, for mode replace_partitions.", words(""), listOf(words(""), "")),
		"columns":      mapOf(columnSchema(nil), "Types that columns are cast to."),
		"checks":       listOf(checkSchema(), "What must hold for the table's rows before they are served."),
	})
}

func checkSchema() map[string]any {
	columns := either("A column, or several.", words(""), listOf(words(""), ""))
	p := properties{
		"name":                words("What its author calls it."),
		"severity":            oneOf("An error keeps the new tables from being activated, a warning is told and kept.", string(SeverityError), string(SeverityWarn)),
		"where":               words("SQL over one row: which rows are judged."),
		"max_failures":        whole("How many rows may break it.", 0, 1<<53),
		"max_failure_percent": map[string]any{"type": "number", "minimum": 0, "maximum": 100, "description": "How many of a hundred judged rows may break it."},
		string(NotNull):       columns,
		string(Unique):        columns,
		string(RowCount): object("How many rows the table has.", nil, properties{
			"min": whole("At least.", 0, 1<<53), "max": whole("At most.", 0, 1<<53)}),
		string(AcceptedValues): object("The only values of a column, besides NULL.", []string{"column", "values"}, properties{
			"column": words("The column."), "values": listOf(anyScalar(""), "The values.")}),
		string(Range): object("The bounds of a column, inclusive; NULL passes.", []string{"column"}, properties{
			"column": words("The column."), "min": anyScalar("At least."), "max": anyScalar("At most.")}),
		string(Relationships): object("Values that another model must have; NULL passes.", []string{"to"}, properties{
			"column": columns, "columns": columns, "to": words("The other model."), "field": columns, "fields": columns}),
		string(Freshness): object("How old the newest value may be.", []string{"column", "max_age"}, properties{
			"column": words("A column of days or times."), "max_age": pattern(`^[1-9][0-9]*[smhdw]$`, "A time span, such as 36h.")}),
		string(Expression): words("SQL over one row that must be true."),
		string(CustomSQL):  words("A SELECT over this project's models; each row it gives is a failure."),
	}
	s := object("A rule: one key that says which, and options beside it.", nil, p)
	var kinds []map[string]any
	for _, k := range checkKinds {
		kinds = append(kinds, map[string]any{"required": []string{k}})
	}
	s["oneOf"] = kinds
	return s
}

func paramSchema() map[string]any {
	return object("A parameter of the endpoint, $NAME in its SQL.", []string{"type"}, properties{
		"type":        oneOf("The type of its values.", paramTypes...),
		"description": words("For people."),
		"list":        truth("Whether a call gives several values."),
		"max_items":   whole("How many values a list may have.", 1, MaxListItems),
		"required":    truth("Whether a call must give it. One that is optional and has no default is NULL when it is left out."),
		"default":     either("The value when a call gives none.", anyScalar(""), listOf(anyScalar(""), "")),
		"enum":        listOf(anyScalar(""), "The only values."),
		"min":         anyScalar("The least value."),
		"max":         anyScalar("The greatest value."),
		"min_length":  whole("The fewest characters of a string.", 0, MaxParamBytes),
		"max_length":  whole("The most characters of a string.", 0, MaxParamBytes),
		"pattern":     words("A regular expression (RE2) that the whole string must match."),
	})
}

func endpointSchema() map[string]any {
	keys := listOf(words(""), "Columns; a minus in front sorts descending.")
	return object("The head of endpoints/NAME.sql: a question, asked by the SELECT below it.", nil, properties{
		"description": words("For people."),
		"limit":       whole("The most rows of an answer.", 1, MaxRows),
		"params":      mapOf(paramSchema(), "The parameters, by name."),
		orderByKey: object("How callers may sort.", []string{"allow"}, properties{
			"allow": listOf(words(""), "The columns that callers may sort by."), "default": keys, "ties": keys}),
		columnsKey: object("What callers may pick, and what columns mean.", nil, properties{
			"allow": listOf(words(""), "The columns that callers may pick."), "descriptions": mapOf(words(""), "What columns mean.")}),
		"examples": listOf(object("A call, checked when the project is deployed.", []string{"name"}, properties{
			"name": pattern(nameForm.String(), "The example's name."), "description": words("For people."),
			"params":   mapOf(either("", anyScalar(""), listOf(anyScalar(""), "")), "The parameters of the call."),
			orderByKey: keys, columnsKey: listOf(words(""), "The columns that it picks."), limitKey: whole("Its limit.", 1, MaxRows)}), "Calls that show what to ask."),
	})
}

func testSchema() map[string]any {
	rows := listOf(map[string]any{"type": "object"}, "Rows: columns to values. A column that is left out is NULL.")
	s := object("tests/NAME.yaml: cases of one model or endpoint.", []string{"cases"}, properties{
		"description": words("For people."),
		"model":       words("The model that is tested."),
		"endpoint":    words("The endpoint that is tested."),
		"cases": listOf(object("A case.", []string{"name", "given", "expect"}, properties{
			"name":     words("What it shows."),
			"params":   mapOf(either("", anyScalar(""), listOf(anyScalar(""), "")), "An endpoint's parameters."),
			orderByKey: listOf(words(""), "How an endpoint is asked to sort."), columnsKey: listOf(words(""), "What an endpoint is asked for."), limitKey: whole("How many rows it is asked for.", 1, MaxRows),
			"ordered": truth("Whether the order of an endpoint's rows counts."),
			"given":   mapOf(rows, "The rows that each relation holds."),
			"expect":  rows,
		}), "The cases."),
	})
	s["oneOf"] = []map[string]any{{"required": []string{"model"}}, {"required": []string{"endpoint"}}}
	return s
}

package mem

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"leapview/domain/plan"
	"leapview/domain/project"
)

// checkProblems are all that is wrong with the model's checks. models are those that have columns, and names are all of the project's.
func checkProblems(m plan.Model, models map[string]plan.Model, names []string) (problems project.Problems) {
	for _, c := range m.Checks {
		report := func(at project.Position, fix, format string, args ...any) {
			problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf("check %s: ", c) + fmt.Sprintf(format, args...), Fix: fix})
		}
		for _, s := range []project.Statement{c.Where, c.Statement} {
			if s.SQL != "" {
				report(s.At, "", "the in-memory store does not read SQL inside of checks")
			}
		}
		switch c.Kind {
		case project.NotNull, project.Unique, project.RowCount, project.Expression, project.CustomSQL:
		case project.AcceptedValues, project.Range:
			kind := typeOf(m, c.Columns[0])
			if c.Kind == project.Range && (kind == "VARCHAR" || kind == "BOOLEAN") {
				report(c.At, "", "column %q is %s, which has no range", c.Columns[0], kind)
				continue
			}
			before := len(problems)
			for _, l := range c.Literals() {
				if v, err := parseValue(l.Text, kind); err != nil {
					report(l.At, "", "%v", err)
				} else if f, ok := v.(float64); ok && !exact(l.Text, f) {
					report(l.At, "", "%q would become %v in column %q, which is DOUBLE", l.Text, f, c.Columns[0])
				}
			}
			if len(problems) > before || c.Low == nil || c.High == nil {
				continue
			}
			// Both were parsed above.
			low, _ := parseValue(c.Low.Text, kind)
			high, _ := parseValue(c.High.Text, kind)
			if compare(low, high) > 0 {
				report(c.Low.At, "swap them", "no value has both a min of %s and a max of %s", c.Low.Text, c.High.Text)
			}
		case project.Relationships:
			to, ok := models[c.To]
			if !ok {
				if !slices.Contains(names, c.To) {
					report(c.At, project.Suggest(c.To, names), "the project has no model %q", c.To)
				}
				continue
			}
			for i, f := range c.Fields {
				mine, theirs := typeOf(m, c.Columns[i]), typeOf(to, f)
				switch {
				case theirs == "":
					report(c.At, "", "model %q has no column %q", c.To, f)
				case mine != theirs && !(isInteger(mine) && isInteger(theirs)):
					report(c.At, "", "column %q is %s, and %q of model %q is %s", c.Columns[i], mine, f, c.To, theirs)
				}
			}
		case project.Freshness:
			if kind := typeOf(m, c.Columns[0]); kind != "DATE" {
				report(c.At, "", "column %q is %s, which has no age", c.Columns[0], kind)
			}
		}
	}
	return problems
}

// exact tells whether the number is the one that was written.
func exact(text string, f float64) bool {
	written, ok := new(big.Rat).SetString(text)
	kept, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return ok && written.Cmp(kept) == 0
}

// typeOf is the type of a model's column, or "".
func typeOf(m plan.Model, name string) project.Type {
	if i := slices.IndexFunc(m.Columns, func(c project.Column) bool { return c.Name == name }); i >= 0 {
		return m.Columns[i].Type
	}
	return ""
}

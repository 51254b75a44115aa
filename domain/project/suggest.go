package project

import "fmt"

// Suggest answers "did you mean …?" with the nearest of the known names, or "" when none is near. The name itself is no answer.
func Suggest(got string, known []string) string {
	best, bestDistance := "", len(got)/3+2
	for _, k := range known {
		if d := distance(got, k); d < bestDistance && k != got {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// distance is the number of single-character edits between a and b, capped for long names so that hostile input stays cheap.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
		}
		prev = row
	}
	return prev[len(b)]
}

// Package bench measures what a node costs over the bare engine on the same data, as ratios taken in one run: machines differ, ratios
// carry over. `make bench` runs it; an ordinary test run does not measure.
package bench

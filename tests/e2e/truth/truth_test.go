package truth

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Proves every number of this package from the CSV files with nothing but a CSV reader, so that the served answers are compared
// with something that no database computed.
func TestNumbersComeFromTheFiles(t *testing.T) {
	data := filepath.Join(root(t), "examples", "flights", "data")

	planes := map[string]bool{}
	read(t, filepath.Join(data, "planes.csv"), func(row map[string]string) { planes[row["tailnum"]] = true })
	airlines := map[string]bool{}
	read(t, filepath.Join(data, "airlines.csv"), func(row map[string]string) { airlines[row["carrier"]] = true })

	months, err := filepath.Glob(filepath.Join(data, "flights-2013-*.csv.gz"))
	if err != nil || len(months) != 12 {
		t.Fatalf("there are %d files of flights (%v), want 12", len(months), err)
	}
	var flights, never, diverted, arrivals, late, distance, delay, arrivalsUA, delayUA, noPlane, noTail int64
	origins, carriers, days := map[string]int64{}, map[string]bool{}, map[[2]string]bool{}
	var cancelled [12]int64
	for _, month := range months {
		read(t, month, func(row map[string]string) {
			flights++
			origins[row["origin"]]++
			carriers[row["carrier"]] = true
			days[[2]string{row["month"], row["day"]}] = true
			distance += number(t, row["distance"])
			if !planes[row["tailnum"]] {
				noPlane++
			}
			if row["tailnum"] == "NA" {
				noTail++
			}
			switch {
			case row["dep_time"] == "NA":
				never++
				cancelled[number(t, row["month"])-1]++
			case row["arr_delay"] == "NA":
				diverted++
			default:
				minutes := number(t, row["arr_delay"])
				arrivals++
				delay += minutes
				if minutes >= 15 {
					late++
				}
				if row["carrier"] == "UA" {
					arrivalsUA++
					delayUA += minutes
				}
			}
		})
	}
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"flights", flights, Flights},
		{"never departed", never, NeverDeparted},
		{"diverted", diverted, Diverted},
		{"arrivals", arrivals, Arrivals},
		{"late arrivals", late, LateArrivals},
		{"distance", distance, Distance},
		{"flights from EWR", origins["EWR"], FlightsEWR},
		{"flights from JFK", origins["JFK"], FlightsJFK},
		{"flights from LGA", origins["LGA"], FlightsLGA},
		{"origins", int64(len(origins)), 3},
		{"arrivals of UA", arrivalsUA, ArrivalsUA},
		{"delay of UA", delayUA, ArrDelayTotalUA},
		{"flights without a plane", noPlane, FlightsWithoutPlane},
		{"flights without a tail number", noTail, FlightsWithoutTailnum},
		{"days", int64(len(days)), Days},
		{"carriers", int64(len(carriers)), Carriers},
	} {
		if c.got != c.want {
			t.Errorf("%s: the files have %d, the package says %d", c.what, c.got, c.want)
		}
	}
	for c := range carriers {
		if !airlines[c] {
			t.Errorf("carrier %s has no name", c)
		}
	}
	if cancelled != CancelledByMonth {
		t.Errorf("cancelled by month: the files have %v, the package says %v", cancelled, CancelledByMonth)
	}
	if got := thousandths(delay, arrivals); got != MeanArrDelay {
		t.Errorf("mean arrival delay: the files have %v, the package says %v", got, MeanArrDelay)
	}
	if got := thousandths(delayUA, arrivalsUA); got != MeanArrDelayUA {
		t.Errorf("mean arrival delay of UA: the files have %v, the package says %v", got, MeanArrDelayUA)
	}
}

func thousandths(sum, n int64) float64 {
	return math.Round(float64(sum)/float64(n)*1000) / 1000
}

// root is the repository's root.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// read gives each row of a CSV file, by the names of its header.
func read(t *testing.T, path string, row func(map[string]string)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	c := csv.NewReader(r)
	header, err := c.Read()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	fields := make(map[string]string, len(header))
	for {
		values, err := c.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, name := range header {
			fields[name] = values[i]
		}
		row(fields)
	}
}

func number(t *testing.T, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Package truth owns what is known about the flights of the example project: numbers that served answers are compared with.
//
// Invariant: its own test computes each number from the CSV files alone, with no database, so an answer that differs is wrong.
// The package does not know how anything is stored or served.
package truth

// The numbers of examples/flights. Minutes and miles are exact sums; the means are rounded to three places.
const (
	// Flights is how many departures were scheduled; NeverDeparted of them have no departure time, and Diverted departed but
	// have no arrival delay. Arrivals are the rest.
	Flights       = 336_776
	NeverDeparted = 8_255
	Diverted      = 1_175
	Arrivals      = 327_346
	// LateArrivals came 15 minutes late or more.
	LateArrivals = 80_100
	// Distance is the sum over all scheduled flights, in miles.
	Distance = 350_217_607
	// MeanArrDelay is over all arrivals.
	MeanArrDelay = 6.895

	// Scheduled departures by origin.
	FlightsEWR = 120_835
	FlightsJFK = 111_279
	FlightsLGA = 104_662

	// The arrivals of carrier UA, their delays in minutes, and the mean of those.
	ArrivalsUA      = 57_782
	ArrDelayTotalUA = 205_589
	MeanArrDelayUA  = 3.558

	// FlightsWithoutPlane have a tail number that no row of the planes has, or none at all: FlightsWithoutTailnum.
	FlightsWithoutPlane   = 52_606
	FlightsWithoutTailnum = 2_512

	// Days have flights, and each of the Carriers has a name.
	Days     = 365
	Carriers = 16
)

// CancelledByMonth is how many flights never departed, from January to December.
var CancelledByMonth = [12]int64{521, 1261, 861, 668, 563, 1009, 940, 486, 452, 236, 233, 1025}

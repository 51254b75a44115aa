/*---
description: Flights, cancellations and mean arrival delay of each day
limit: 366
params:
  from_date: {type: date, description: First day, default: "2013-01-01", min: "2013-01-01", max: "2013-12-31"}
  to_date: {type: date, description: Last day, default: "2013-12-31", min: "2013-01-01", max: "2013-12-31"}
  carrier: {type: string, description: A carrier code such as UA; all carriers when left out}
  origin: {type: string, description: All origins when left out, enum: [EWR, JFK, LGA]}
---*/
SELECT
    flight_date,
    sum(flights)::BIGINT AS flights,
    sum(cancelled)::BIGINT AS cancelled,
    round(sum(arr_delay_total)::BIGINT / nullif(sum(arrivals)::BIGINT, 0), 3) AS mean_arr_delay
FROM daily_delays
WHERE flight_date BETWEEN $from_date AND $to_date
  AND ($carrier IS NULL OR carrier = $carrier)
  AND ($origin IS NULL OR origin = $origin)
GROUP BY flight_date
ORDER BY flight_date

/*---
description: Flights, cancellations and delays of each origin
limit: 3
params:
  from_date: {type: date, description: First day, default: "2013-01-01", min: "2013-01-01", max: "2013-12-31"}
  to_date: {type: date, description: Last day, default: "2013-12-31", min: "2013-01-01", max: "2013-12-31"}
  carrier: {type: string, description: A carrier code such as UA; all carriers when left out}
---*/
SELECT
    origin,
    sum(flights)::BIGINT AS flights,
    sum(cancelled)::BIGINT AS cancelled,
    sum(arrivals)::BIGINT AS arrivals,
    round(sum(dep_delay_total)::BIGINT / nullif(sum(departures)::BIGINT, 0), 3) AS mean_dep_delay,
    round(sum(arr_delay_total)::BIGINT / nullif(sum(arrivals)::BIGINT, 0), 3) AS mean_arr_delay
FROM daily_delays
WHERE flight_date BETWEEN $from_date AND $to_date
  AND ($carrier IS NULL OR carrier = $carrier)
GROUP BY origin
ORDER BY origin

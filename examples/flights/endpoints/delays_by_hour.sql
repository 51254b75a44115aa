/*---
description: How departure delays grow over the day, by scheduled hour
limit: 24
params:
  from_date: {type: date, description: First day, default: "2013-01-01", min: "2013-01-01", max: "2013-12-31"}
  to_date: {type: date, description: Last day, default: "2013-12-31", min: "2013-01-01", max: "2013-12-31"}
  origin: {type: string, description: All origins when left out, enum: [EWR, JFK, LGA]}
---*/
SELECT
    hour,
    sum(flights)::BIGINT AS flights,
    sum(cancelled)::BIGINT AS cancelled,
    sum(departures)::BIGINT AS departures,
    round(sum(dep_delay_total)::BIGINT / nullif(sum(departures)::BIGINT, 0), 3) AS mean_dep_delay
FROM hourly_delays
WHERE flight_date BETWEEN $from_date AND $to_date
  AND ($origin IS NULL OR origin = $origin)
GROUP BY hour
ORDER BY hour

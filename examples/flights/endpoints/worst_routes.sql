/*---
description: The routes with the worst mean arrival delay, among those with enough arrivals to judge
limit: 200
params:
  from_date: {type: date, description: First day, default: "2013-01-01", min: "2013-01-01", max: "2013-12-31"}
  to_date: {type: date, description: Last day, default: "2013-12-31", min: "2013-01-01", max: "2013-12-31"}
  origin: {type: string, description: All origins when left out, enum: [EWR, JFK, LGA]}
  min_arrivals: {type: integer, description: Fewest arrivals of a route, default: 100, min: 1, max: 100000}
  top: {type: integer, description: How many routes, default: 10, min: 1, max: 200}
---*/
SELECT
    origin,
    dest,
    dest_name,
    sum(flights)::BIGINT AS flights,
    sum(arrivals)::BIGINT AS arrivals,
    sum(late_arrivals)::BIGINT AS late_arrivals,
    round(sum(arr_delay_total)::BIGINT / sum(arrivals)::BIGINT, 3) AS mean_arr_delay
FROM route_delays
WHERE flight_date BETWEEN $from_date AND $to_date
  AND ($origin IS NULL OR origin = $origin)
GROUP BY origin, dest, dest_name
HAVING sum(arrivals) >= $min_arrivals
ORDER BY mean_arr_delay DESC, origin, dest
LIMIT $top

/*---
description: Arrival delays of each carrier, the worst first
limit: 100
params:
  from_date: {type: date, description: First day, default: "2013-01-01", min: "2013-01-01", max: "2013-12-31"}
  to_date: {type: date, description: Last day, default: "2013-12-31", min: "2013-01-01", max: "2013-12-31"}
  origin: {type: string, description: All origins when left out, enum: [EWR, JFK, LGA]}
---*/
SELECT
    carrier,
    carrier_name,
    sum(flights)::BIGINT AS flights,
    sum(arrivals)::BIGINT AS arrivals,
    sum(late_arrivals)::BIGINT AS late_arrivals,
    sum(arr_delay_total)::BIGINT AS arr_delay_total,
    round(sum(arr_delay_total)::BIGINT / nullif(sum(arrivals)::BIGINT, 0), 3) AS mean_arr_delay
FROM daily_delays
WHERE flight_date BETWEEN $from_date AND $to_date
  AND ($origin IS NULL OR origin = $origin)
GROUP BY carrier, carrier_name
ORDER BY mean_arr_delay DESC NULLS LAST, carrier

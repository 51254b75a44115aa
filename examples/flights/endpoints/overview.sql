/*---
description: The head of the dashboard - flights, cancellations, distance and mean arrival delay, in one row
limit: 1
params:
  from_date: {type: date, description: First day, default: "2013-01-01", min: "2013-01-01", max: "2013-12-31"}
  to_date: {type: date, description: Last day, default: "2013-12-31", min: "2013-01-01", max: "2013-12-31"}
  carrier: {type: string, description: A carrier code such as UA; all carriers when left out}
---*/
SELECT
    coalesce(sum(flights), 0)::BIGINT AS flights,
    coalesce(sum(cancelled), 0)::BIGINT AS never_departed,
    coalesce(sum(diverted), 0)::BIGINT AS diverted,
    coalesce(sum(arrivals), 0)::BIGINT AS arrivals,
    coalesce(sum(late_arrivals), 0)::BIGINT AS late_arrivals,
    coalesce(sum(distance), 0)::BIGINT AS distance,
    round(sum(arr_delay_total)::BIGINT / nullif(sum(arrivals)::BIGINT, 0), 3) AS mean_arr_delay
FROM daily_delays
WHERE flight_date BETWEEN $from_date AND $to_date
  AND ($carrier IS NULL OR carrier = $carrier)

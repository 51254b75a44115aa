/*---
description: Flights, cancellations and mean arrival delay of each day
limit: 366
params:
  from_date: {type: date, description: First day, default: "2013-01-01", min: "2013-01-01", max: "2013-12-31"}
  to_date: {type: date, description: Last day, default: "2013-12-31", min: "2013-01-01", max: "2013-12-31"}
  carrier: {type: string, description: A carrier code such as UA; all carriers when left out}
  origin: {type: string, description: All origins when left out, enum: [EWR, JFK, LGA]}
order_by: {allow: [flight_date, flights, cancelled, mean_arr_delay], default: [flight_date], ties: [flight_date]}
examples:
  - name: worst_days
    description: The ten days on which flights arrived latest
    order_by: [-mean_arr_delay]
    limit: 10
  - name: february_snow
    params: {from_date: "2013-02-07", to_date: "2013-02-11", origin: LGA}
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

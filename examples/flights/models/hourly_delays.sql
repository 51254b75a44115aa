/*---
description: Flights and delays of each day, origin and scheduled hour
layer: mart
checks:
  - not_null: [flight_date, origin, hour]
  - unique: [flight_date, origin, hour]
---*/
SELECT
    flight_date,
    origin,
    hour,
    count(*) AS flights,
    count(*) FILTER (WHERE cancelled) AS cancelled,
    count(dep_delay) AS departures,
    coalesce(sum(dep_delay), 0)::BIGINT AS dep_delay_total,
    count(arr_delay) AS arrivals,
    coalesce(sum(arr_delay), 0)::BIGINT AS arr_delay_total
FROM stg_flights
GROUP BY flight_date, origin, hour

/*---
description: Flights and delays of each day and route; a few destinations have no row in the airports and so no name
layer: mart
checks:
  - not_null: [flight_date, origin, dest]
  - unique: [flight_date, origin, dest]
---*/
SELECT
    f.flight_date,
    f.origin,
    f.dest,
    p.airport_name AS dest_name,
    max(f.distance) AS distance,
    count(*) AS flights,
    count(*) FILTER (WHERE f.cancelled) AS cancelled,
    count(f.arr_delay) AS arrivals,
    count(*) FILTER (WHERE f.arr_delay >= 15) AS late_arrivals,
    coalesce(sum(f.arr_delay), 0)::BIGINT AS arr_delay_total
FROM stg_flights AS f
LEFT JOIN stg_airports AS p ON p.airport = f.dest
GROUP BY f.flight_date, f.origin, f.dest, p.airport_name

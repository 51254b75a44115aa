/*---
description: Flights and delays of each day, origin and carrier; totals are kept, so that any sum over them is exact
layer: mart
checks:
  - not_null: [flight_date, origin, carrier, carrier_name, flights]
  - unique: [flight_date, origin, carrier]
  - row_count: {min: 1}
  - range: {column: late_arrivals, min: 0}
  - expression: late_arrivals <= arrivals AND arrivals <= flights
  - name: every flight is counted once
    sql: |
      SELECT (SELECT sum(flights) FROM daily_delays) AS counted, (SELECT count(*) FROM stg_flights) AS flights
      WHERE counted <> flights
---*/
SELECT
    f.flight_date,
    f.origin,
    f.carrier,
    a.carrier_name,
    count(*) AS flights,
    count(*) FILTER (WHERE f.cancelled) AS cancelled,
    count(*) FILTER (WHERE f.diverted) AS diverted,
    count(f.arr_delay) AS arrivals,
    count(*) FILTER (WHERE f.arr_delay >= 15) AS late_arrivals,
    coalesce(sum(f.arr_delay), 0)::BIGINT AS arr_delay_total,
    count(f.dep_delay) AS departures,
    coalesce(sum(f.dep_delay), 0)::BIGINT AS dep_delay_total,
    sum(f.distance)::BIGINT AS distance
FROM stg_flights AS f
LEFT JOIN stg_airlines AS a ON a.carrier = f.carrier
GROUP BY f.flight_date, f.origin, f.carrier, a.carrier_name

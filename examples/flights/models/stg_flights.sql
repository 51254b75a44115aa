/*---
description: One row a scheduled departure, with real dates and times and what became of the flight
layer: staging
columns:
  hour: TINYINT
checks:
  - row_count: {min: 336776, max: 336776}
  - not_null: [flight_date, scheduled_at, carrier, flight, origin, dest, cancelled, diverted, distance]
  - unique: [carrier, flight, origin, scheduled_at]
  - relationships: {column: carrier, to: stg_airlines, field: carrier}
  - expression: arr_delay IS NULL
    name: what was cancelled never arrived
    where: cancelled
  - relationships: {column: tailnum, to: stg_planes, field: tailnum}
    name: every aircraft is registered
    severity: warn
---*/
SELECT
    make_date(year, month, day) AS flight_date,
    make_date(year, month, day) + to_minutes(hour * 60 + minute) AS scheduled_at,
    make_date(year, month, day) + to_minutes(hour * 60 + minute + dep_delay) AS departed_at,
    hour,
    time_hour,
    carrier,
    flight,
    tailnum,
    origin,
    dest,
    dep_delay,
    arr_delay,
    -- A flight without a departure was cancelled; one that departed and has no arrival delay went elsewhere.
    dep_time IS NULL AS cancelled,
    dep_time IS NOT NULL AND arr_delay IS NULL AS diverted,
    air_time,
    distance
FROM raw_flights

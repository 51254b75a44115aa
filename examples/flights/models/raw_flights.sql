/*---
description: The flights as they were delivered
layer: raw
materialize: table
mode: full
checks:
  - row_count: {min: 336776, max: 336776}
  - not_null: [year, month, day, sched_dep_time, carrier, flight, origin, dest, distance, hour, minute, time_hour]
  - range: {column: month, min: 1, max: 12}
  - accepted_values: {column: origin, values: [EWR, JFK, LGA]}
---*/
SELECT * FROM flights

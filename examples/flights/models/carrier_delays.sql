/*---
description: Flights and delays of each carrier in the whole year
layer: mart
checks:
  - not_null: [carrier, carrier_name]
  - unique: carrier
  - row_count: {min: 16, max: 16}
---*/
SELECT
    carrier,
    carrier_name,
    sum(flights)::BIGINT AS flights,
    sum(cancelled)::BIGINT AS cancelled,
    sum(arrivals)::BIGINT AS arrivals,
    sum(late_arrivals)::BIGINT AS late_arrivals,
    sum(arr_delay_total)::BIGINT AS arr_delay_total,
    sum(arr_delay_total)::BIGINT / sum(arrivals)::BIGINT AS mean_arr_delay
FROM daily_delays
GROUP BY carrier, carrier_name

/*---
description: All carriers in the whole year, the most punctual first
limit: 100
---*/
SELECT
    rank() OVER (ORDER BY late_arrivals / arrivals, carrier) AS rank,
    carrier,
    carrier_name,
    flights,
    round(100 * late_arrivals / arrivals, 2) AS late_percent,
    round(mean_arr_delay, 3) AS mean_arr_delay
FROM carrier_delays
ORDER BY rank

/*---
description: Arrival delays of each carrier, the worst first
limit: 100
params:
  from_date: {type: date, description: First day, default: "2013-01-01", min: "2013-01-01", max: "2013-12-31"}
  to_date: {type: date, description: Last day, default: "2013-12-31", min: "2013-01-01", max: "2013-12-31"}
  origin: {type: string, description: All origins when left out, enum: [EWR, JFK, LGA]}
  carriers: {type: string, list: true, max_items: 16, pattern: "[0-9A-Z]{2}", description: Carrier codes such as UA; all carriers when left out}
order_by:
  allow: [carrier, carrier_name, flights, arrivals, late_arrivals, mean_arr_delay]
  default: [-mean_arr_delay]
  ties: [carrier]
columns:
  allow: [carrier, carrier_name, flights, arrivals, late_arrivals, arr_delay_total, mean_arr_delay]
  descriptions:
    arrivals: Flights that arrived at their destination
    late_arrivals: Arrivals at least 15 minutes late
    arr_delay_total: Minutes over all arrivals, where early ones count below zero
    mean_arr_delay: Minutes an arrival
examples:
  - name: big_three_in_july
    description: The three largest carriers, the one with the most flights first
    params: {carriers: [UA, B6, EV], from_date: "2013-07-01", to_date: "2013-07-31"}
    order_by: [-flights]
  - name: most_late_from_jfk
    params: {origin: JFK}
    order_by: [-late_arrivals]
    columns: [carrier_name, late_arrivals]
    limit: 3
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
  AND ($carriers IS NULL OR carrier IN (SELECT unnest($carriers)))
GROUP BY carrier, carrier_name

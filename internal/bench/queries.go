package bench

import (
	"fmt"
	"slices"
	"strings"
)

// queries are those of the public benchmark that run so far, by name. q5 is its inner query: bids per auction and window.
// Where the benchmark's dialect has functions of its own PostgreSQL's stand here.
var queries = map[string]string{
	"q0": `SELECT auction, bidder, price, date_time, extra FROM bid`,
	"q1": `SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid`,
	"q2": `SELECT auction, price FROM bid WHERE auction % 123 = 0`,
	"q5": `SELECT auction, count(*) AS num, window_start, window_end
FROM HOP(bid, date_time, INTERVAL '2 seconds', INTERVAL '10 seconds')
GROUP BY auction, window_start, window_end`,
	"q14": `SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN extract(hour FROM date_time) >= 8 AND extract(hour FROM date_time) <= 18 THEN 'dayTime'
       WHEN extract(hour FROM date_time) <= 6 OR extract(hour FROM date_time) >= 20 THEN 'nightTime'
       ELSE 'otherTime' END AS bid_time_type,
  date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000`,
	"q17": `SELECT auction, to_char(date_time, 'YYYY-MM-DD') AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, to_char(date_time, 'YYYY-MM-DD')`,
	"q21": `SELECT auction, bidder, price, channel,
  CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
       WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
       ELSE substring(url FROM '(?:&|^)channel_id=([^&]*)') END AS channel_id
FROM bid
WHERE substring(url FROM '(?:&|^)channel_id=([^&]*)') IS NOT NULL OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')`,
	"q22": `SELECT auction, bidder, price, channel,
  split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3 FROM bid`,
}

// Queries are the names of the Nexmark queries that run.
func Queries() []string {
	var names []string
	for name := range queries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names
}

func queryText(name string) (string, error) {
	text, ok := queries[name]
	if !ok {
		return "", fmt.Errorf("query %q is not known; there are %s", name, strings.Join(Queries(), ", "))
	}
	return text, nil
}

// bidSource declares bids made by the generator.
func bidSource(o *NexmarkOptions) string {
	return fmt.Sprintf(`CREATE SOURCE bid (auction bigint, bidder bigint, price bigint, channel varchar, url varchar, date_time timestamp, extra varchar,
  WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds')
WITH (connector='nexmark', nexmark.table.type='bid', nexmark.event.num=%d, nexmark.event.rate=%d, nexmark.seed=%d)`, o.Events, o.Rate, o.Seed)
}

// bidTopic declares bids that lie in a topic as JSON, as the benchmark's own generator writes them.
const bidTopic = `CREATE SOURCE bid (auction bigint, bidder bigint, price bigint, channel varchar, url varchar, "dateTime" bigint, extra varchar,
  date_time timestamp AS (timestamp '1970-01-01 00:00:00' + "dateTime" * INTERVAL '1 millisecond'),
  WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds')
WITH (connector='kafka', topic='bid', scan.startup.mode='earliest') FORMAT PLAIN ENCODE JSON`

-- Transfers as Kafka transactions over two topics: a producer with a transactional.id writes the debit to one and the credit to the other, and
-- commits or aborts. The total over both is 0 at every moment, in the view and in ad hoc queries: all of a transaction is in one epoch, and nothing of one
-- that is open or was aborted is seen.
CREATE SOURCE debits (id bigint, amount bigint)
    WITH (connector = 'kafka', topic = 'debits') FORMAT PLAIN ENCODE JSON;

CREATE SOURCE credits (id bigint, amount bigint)
    WITH (connector = 'kafka', topic = 'credits') FORMAT PLAIN ENCODE JSON;

CREATE MATERIALIZED VIEW total AS
    SELECT coalesce(sum(amount), 0)::bigint AS total, count(*) AS n
    FROM (SELECT amount FROM debits UNION ALL SELECT amount FROM credits) AS entries;

-- What holds a view back while a transaction is open:
SELECT name, held_by FROM leat_jobs;

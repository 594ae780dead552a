import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

/**
 * A Kafka Streams word count, exactly once, against the broker at $BOOTSTRAP. Run as: prepare ID N (topics and N lines), count ID FOLDER
 * (the application, until it is killed; prints a line per commit's progress), verify ID N (the counts, read committed; ends with the lines of a client program).
 */
public class WordCount {
    static final String BOOTSTRAP = System.getenv("BOOTSTRAP");
    static final String[] WORDS = {"alpha", "beta", "gamma", "delta", "epsilon"};

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "prepare" -> prepare(args[1], Integer.parseInt(args[2]));
            case "count" -> count(args[1], Path.of(args[2]));
            default -> verify(args[1], Integer.parseInt(args[2]));
        }
    }

    static void prepare(String id, int lines) throws Exception {
        try (var admin = Admin.create(Map.of("bootstrap.servers", BOOTSTRAP))) {
            admin.createTopics(List.of(new NewTopic(id + "-in", 2, (short) 1), new NewTopic(id + "-out", 2, (short) 1))).all().get();
        }
        try (var p = new KafkaProducer<>(Map.of("bootstrap.servers", BOOTSTRAP), new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < lines; i++) p.send(new ProducerRecord<>(id + "-in", i % 2, null, WORDS[i % 5] + " " + WORDS[(i / 5) % 5]));
        }
    }

    static void count(String id, Path folder) throws Exception {
        var b = new StreamsBuilder();
        b.stream(id + "-in", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(v -> List.of(v.split(" ")))
            .groupBy((k, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as(org.apache.kafka.streams.state.Stores.inMemoryKeyValueStore("counts")))
            .toStream().to(id + "-out", Produced.with(Serdes.String(), Serdes.Long()));
        var c = new Properties();
        c.putAll(Map.of("application.id", id, "bootstrap.servers", BOOTSTRAP, "processing.guarantee", "exactly_once_v2", "commit.interval.ms", "100",
            "state.dir", folder.toString(), "replication.factor", 1, "max.poll.records", 200, "consumer.session.timeout.ms", 6000, "consumer.auto.offset.reset", "earliest"));
        c.put("statestore.cache.max.bytes", 0);
        new KafkaStreams(b.build(), c).start();
        new CountDownLatch(1).await();
    }

    static void verify(String id, int lines) {
        long want = 2L * lines / 5;
        var config = Map.<String, Object>of("bootstrap.servers", BOOTSTRAP, "isolation.level", "read_committed");
        try (var c = new KafkaConsumer<>(config, new StringDeserializer(), new LongDeserializer())) {
            var parts = List.of(new TopicPartition(id + "-out", 0), new TopicPartition(id + "-out", 1));
            c.assign(parts);
            c.seekToBeginning(parts);
            var last = new TreeMap<String, Long>();
            String wrong = null;
            long end = System.currentTimeMillis() + 120_000;
            while (System.currentTimeMillis() < end && !(last.size() == 5 && last.values().stream().allMatch(v -> v >= want))) {
                for (var r : c.poll(Duration.ofMillis(300))) {
                    long before = last.getOrDefault(r.key(), 0L);
                    if (r.value() != before + 1 && wrong == null) wrong = r.key() + " went from " + before + " to " + r.value();
                    last.put(r.key(), r.value());
                }
            }
            System.out.println(wrong == null ? "ok every count follows the one before it" : "FAIL every count follows the one before it: " + wrong);
            boolean right = last.size() == 5 && last.values().stream().allMatch(v -> v == want);
            System.out.println(right ? "ok the counts at the end are exact" : "FAIL the counts at the end are exact: " + last + ", want " + want + " each");
            System.out.println("done");
        }
    }
}

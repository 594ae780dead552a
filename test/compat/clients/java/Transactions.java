import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;

/** The Java client against the broker at $BOOTSTRAP: a line per check, and "done" at the end. */
public class Transactions {
    static final String BOOTSTRAP = System.getenv("BOOTSTRAP");
    static int names;

    interface Check { void run() throws Exception; }

    static String fresh(String prefix) { return prefix + "-" + System.nanoTime() + "-" + names++; }

    static Map<String, Object> config(Object... more) {
        var c = new HashMap<String, Object>(Map.of("bootstrap.servers", BOOTSTRAP, "auto.offset.reset", "earliest", "enable.auto.commit", false,
            "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer"));
        for (int i = 0; i < more.length; i += 2) c.put((String) more[i], more[i + 1]);
        return c;
    }

    static String create(String prefix, int partitions) throws Exception {
        try (var admin = Admin.create(config())) {
            var name = fresh(prefix);
            admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
            return name;
        }
    }

    static List<String> read(String topic, String isolation, int atLeast) {
        try (var c = new KafkaConsumer<String, String>(config("isolation.level", isolation))) {
            var parts = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
            c.assign(parts);
            c.seekToBeginning(parts);
            var out = new ArrayList<String>();
            long end = System.currentTimeMillis() + (atLeast == 0 ? 2000 : 30000);
            while (System.currentTimeMillis() < end) {
                for (var r : c.poll(Duration.ofMillis(200))) out.add(r.value());
                if (atLeast > 0 && out.size() >= atLeast) { atLeast = 0; end = Math.min(end, System.currentTimeMillis() + 500); }
            }
            Collections.sort(out);
            return out;
        }
    }

    static void equal(Object got, Object want) {
        if (!Objects.equals(got, want)) throw new AssertionError("got " + got + ", want " + want);
    }

    static void transaction(boolean commit, String protocol) throws Exception {
        var source = create("source", 2);
        var target = create("target", 2);
        var group = fresh("group");
        try (var p = new KafkaProducer<String, String>(config("transactional.id", fresh("id")));
             var c = new KafkaConsumer<String, String>(config("group.protocol", protocol, "group.id", group))) {
            p.initTransactions();
            p.beginTransaction();
            for (int i = 0; i < 4; i++) p.send(new ProducerRecord<>(source, i % 2, "k", "s" + i));
            p.commitTransaction();
            c.subscribe(List.of(source));
            int seen = 0;
            for (long end = System.currentTimeMillis() + 60000; seen < 4 && System.currentTimeMillis() < end; ) seen += c.poll(Duration.ofMillis(200)).count();
            equal(seen, 4);
            p.beginTransaction();
            for (int i = 0; i < 4; i++) p.send(new ProducerRecord<>(target, i % 2, "k", "t" + i)).get();
            var parts = Map.of(new TopicPartition(source, 0), new OffsetAndMetadata(2), new TopicPartition(source, 1), new OffsetAndMetadata(2));
            p.sendOffsetsToTransaction(parts, c.groupMetadata());
            if (commit) p.commitTransaction(); else p.abortTransaction();
            var all = List.of("t0", "t1", "t2", "t3");
            equal(read(target, "read_uncommitted", 4), all);
            equal(read(target, "read_committed", commit ? 4 : 0), commit ? all : List.of());
            var committed = c.committed(parts.keySet());
            equal(committed.get(new TopicPartition(source, 0)) == null ? -1L : committed.get(new TopicPartition(source, 0)).offset(), commit ? 2L : -1L);
        }
    }

    static void fencing() throws Exception {
        var topic = create("fenced", 2);
        var id = fresh("id");
        try (var old = new KafkaProducer<String, String>(config("transactional.id", id)); var young = new KafkaProducer<String, String>(config("transactional.id", id))) {
            old.initTransactions();
            old.beginTransaction();
            old.send(new ProducerRecord<>(topic, 0, "k", "old")).get();
            young.initTransactions();
            try {
                old.commitTransaction();
                throw new AssertionError("the older producer could commit");
            } catch (ProducerFencedException | org.apache.kafka.common.errors.InvalidProducerEpochException expected) { }
            young.beginTransaction();
            young.send(new ProducerRecord<>(topic, 1, "k", "new"));
            young.commitTransaction();
            equal(read(topic, "read_committed", 1), List.of("new"));
        }
    }

    static void fenceByAdmin() throws Exception {
        var topic = create("fenced", 2);
        var id = fresh("id");
        try (var p = new KafkaProducer<String, String>(config("transactional.id", id)); var admin = Admin.create(config())) {
            p.initTransactions();
            p.beginTransaction();
            p.send(new ProducerRecord<>(topic, 0, "k", "v")).get();
            equal(admin.describeTransactions(List.of(id)).description(id).get().state(), TransactionState.ONGOING);
            admin.fenceProducers(List.of(id)).all().get();
            equal(read(topic, "read_committed", 0), List.of());
            equal(admin.describeTransactions(List.of(id)).description(id).get().state(), TransactionState.EMPTY);
        }
    }

    static void check(String name, Check c) {
        try {
            c.run();
            System.out.println("ok " + name);
        } catch (Throwable e) {
            e.printStackTrace();
            System.out.println("FAIL " + name + ": " + e.toString().replaceAll("\\s+", " "));
        }
    }

    public static void main(String[] args) {
        check("transaction committed, classic group", () -> transaction(true, "classic"));
        check("transaction aborted, classic group", () -> transaction(false, "classic"));
        check("transaction committed, group.protocol=consumer", () -> transaction(true, "consumer"));
        check("transaction aborted, group.protocol=consumer", () -> transaction(false, "consumer"));
        check("transactional id fenced by a second producer", Transactions::fencing);
        check("transactional id fenced by the admin client", Transactions::fenceByAdmin);
        System.out.println("done");
        System.exit(0);
    }
}

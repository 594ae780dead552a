package record

// Partition is where the default partitioner of Kafka's clients puts a record with this key: murmur2 modulo the number of partitions.
func Partition(key []byte, partitions int) int32 {
	if partitions <= 1 {
		return 0
	}
	return int32(int(murmur2(key)&0x7fffffff) % partitions)
}

// murmur2 is the 32-bit hash that Kafka's clients use, with their seed.
func murmur2(data []byte) uint32 {
	const (
		seed = uint32(0x9747b28c)
		m    = uint32(0x5bd1e995)
		r    = 24
	)
	h := seed ^ uint32(len(data))
	for len(data) >= 4 {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
		data = data[4:]
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

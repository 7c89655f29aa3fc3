
typedef struct girih_array { uint64_t start, bytes; int written; } girih_array;

// Whether two arrays share a byte of which one may be written. An array of unknown length may share any.
GIRIH_HELPER int girih_overlap(const girih_array *arrays, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < i; j++) {
      const girih_array *a = arrays + i, *b = arrays + j;
      if (!a->written && !b->written) continue;
      if (a->bytes == 0 || b->bytes == 0) return 1;
      if (a->start - b->start < b->bytes || b->start - a->start < a->bytes) return 1;
    }
  return 0;
}

GIRIH_HELPER uint64_t girih_bits_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
GIRIH_HELPER uint64_t girih_bits_f64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}


// Integers that are exact or `bad`.
GIRIH_HELPER int64_t girih_add(int *bad, int64_t a, int64_t b) {
  int64_t r = 0;
  *bad |= __builtin_add_overflow(a, b, &r);
  return r;
}
GIRIH_HELPER int64_t girih_sub(int *bad, int64_t a, int64_t b) {
  int64_t r = 0;
  *bad |= __builtin_sub_overflow(a, b, &r);
  return r;
}
GIRIH_HELPER int64_t girih_mul(int *bad, int64_t a, int64_t b) {
  int64_t r = 0;
  *bad |= __builtin_mul_overflow(a, b, &r);
  return r;
}
GIRIH_HELPER int64_t girih_mod(int *bad, int64_t a, int64_t b) {
  if (b <= 0) return *bad = 1, 0;
  return (a % b + b) % b;
}
GIRIH_HELPER int64_t girih_div(int *bad, int64_t a, int64_t b) {
  if (b <= 0) return *bad = 1, 0;
  return a / b - (a % b < 0);
}
GIRIH_HELPER int64_t girih_min(int *bad, int64_t a, int64_t b) {
  (void)bad;
  return a < b ? a : b;
}
GIRIH_HELPER int64_t girih_max(int *bad, int64_t a, int64_t b) {
  (void)bad;
  return a > b ? a : b;
}
// Elements of an array with one more extent.
GIRIH_HELPER int64_t girih_by(int *bad, int64_t elements, int64_t extent) {
  *bad |= extent < 0 || extent > (int64_t)1 << 40;
  return girih_mul(bad, elements, extent);
}

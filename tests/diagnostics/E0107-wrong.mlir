// girih check
// exit 1, at 3:1
%a = constant <i32: 1> : tile<i32>
%b = constant <i1: 1> : tile<i1>
%c = if %b -> (tile<f32>) {
  yield %a : tile<i32>
} else {
  %f = constant <f32: 1.0> : tile<f32>
  yield %f : tile<f32>
}

// girih check
// exit 1, at 3:1
%f = constant <f32: 1.0> : tile<f32>

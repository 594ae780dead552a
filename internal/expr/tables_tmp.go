package expr

var integerArithmetic, floatArithmetic, numericArithmetic, mathFunctions, booleanTests, extremes, textConcat, arrayFunctions, clockFunctions []Overload

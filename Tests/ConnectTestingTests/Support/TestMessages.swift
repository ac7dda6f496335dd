import Connect
import LoopbackServer

/// Shorter names for the messages of the tests.
typealias EchoRequest = Connect_Test_V1_EchoRequest
typealias EchoResponse = Connect_Test_V1_EchoResponse
typealias CountRequest = Connect_Test_V1_CountRequest
typealias CountResponse = Connect_Test_V1_CountResponse
typealias SumRequest = Connect_Test_V1_SumRequest
typealias SumResponse = Connect_Test_V1_SumResponse
typealias ConverseRequest = Connect_Test_V1_ConverseRequest
typealias ConverseResponse = Connect_Test_V1_ConverseResponse

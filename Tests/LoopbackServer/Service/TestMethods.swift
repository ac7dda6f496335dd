/// The methods of `connect.test.v1.TestService`, for tests that make calls without its client.
public typealias TestMethods = Connect_Test_V1_TestServiceClient.Methods

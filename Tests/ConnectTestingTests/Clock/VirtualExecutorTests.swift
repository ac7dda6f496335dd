import ConnectTesting
import XCTest

final class VirtualExecutorTests: XCTestCase {
}
